"""Makes gRPC calls with grpcio and prints how each of them ended.

It reads one call per line from its standard input and writes one outcome per line, both as JSON. Messages are
bytes, so that it needs no stubs.
"""

import base64
import json
import sys

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

TIMEOUT_SECONDS = 20


def as_is(message):
    return message


def run(channel, call):
    """Makes a call and returns the number of messages received and the error that ended it, if any."""
    request = base64.b64decode(call["message"])
    options = {
        "metadata": tuple(call["headers"].items()),
        "timeout": TIMEOUT_SECONDS,
        "compression": grpc.Compression.Gzip if call["gzip"] else grpc.Compression.NoCompression,
    }
    messages = 0
    try:
        if not call["serverStreaming"]:
            if call["clientStreaming"]:
                channel.stream_unary(call["path"], as_is, as_is)(iter([request]), **options)
            else:
                channel.unary_unary(call["path"], as_is, as_is)(request, **options)
            return 1, None
        if call["clientStreaming"]:
            answers = channel.stream_stream(call["path"], as_is, as_is)(iter([request]), **options)
        else:
            answers = channel.unary_stream(call["path"], as_is, as_is)(request, **options)
        for _ in answers:
            messages += 1
    except grpc.RpcError as error:
        return messages, error
    return messages, None


def describe(messages, error):
    outcome = {
        "messages": messages,
        "code": 0,
        "message": "",
        "reason": "",
        "domain": "",
        "metadata": {},
        "fields": [],
        "retryAfter": "",
    }
    if error is None:
        return outcome
    outcome["code"] = error.code().value[0]
    outcome["message"] = error.details()
    status = rpc_status.from_call(error)
    for detail in status.details if status is not None else []:
        info = error_details_pb2.ErrorInfo()
        bad_request = error_details_pb2.BadRequest()
        retry = error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            outcome["reason"] = info.reason
            outcome["domain"] = info.domain
            outcome["metadata"] = dict(info.metadata)
        elif detail.Unpack(bad_request):
            outcome["fields"] = [violation.field for violation in bad_request.field_violations]
        elif detail.Unpack(retry):
            outcome["retryAfter"] = f"{retry.retry_delay.ToTimedelta().total_seconds():g}s"
    return outcome


def main():
    channels = {}
    for line in sys.stdin:
        call = json.loads(line)
        authority = call["authority"]
        if authority not in channels:
            channels[authority] = grpc.insecure_channel(authority)
        print(json.dumps(describe(*run(channels[authority], call))), flush=True)


main()

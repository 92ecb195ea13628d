"""Calls a key service with google-cloud-kms, over gRPC and REST.

It reads one call per line from standard input and writes one outcome per line, both as JSON:

    {"transport": "rest", "method": "get_crypto_key", "request": {"name": …}, "token": …}
    {"answer": …} or {"error": {"class": "NotFound", "code": "NOT_FOUND", "reason": …, "message": …}}

The only argument is the server's address, "127.0.0.1:port".
"""

import json
import sys
from datetime import timedelta

import grpc
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import GoogleAuthError
from google.cloud import kms
from google.cloud.kms_v1.services.key_management_service import transports
from google.oauth2.credentials import Credentials
from google.protobuf import json_format
from google.protobuf.message import Message

TIMEOUT_SECONDS = 20


def connect(authority, transport, token):
    """Creates a client and the metadata with the token."""
    if transport == "grpc":
        # grpcio sends credentials only over TLS, so the token is sent as metadata.
        channel = grpc.insecure_channel(authority)
        stub = transports.KeyManagementServiceGrpcTransport(channel=channel)
        return kms.KeyManagementServiceClient(transport=stub), [("authorization", f"Bearer {token}")] if token else []
    credentials = Credentials(token) if token else AnonymousCredentials()
    rest = transports.KeyManagementServiceRestTransport(host=authority, url_scheme="http", credentials=credentials)
    return kms.KeyManagementServiceClient(transport=rest), []


def to_request(value, name=""):
    """Converts a duration for the library, whose other types match JSON."""
    if name == "destroy_scheduled_duration":
        return timedelta(seconds=int(value.removesuffix("s")))
    return {key: to_request(member, key) for key, member in value.items()} if isinstance(value, dict) else value


def to_json(answer):
    """Converts an answer, or all rows of a list, to JSON."""
    if hasattr(answer, "locations"):
        return [to_json(row) for row in answer.locations]
    if isinstance(answer, Message):
        return json_format.MessageToDict(answer)
    if hasattr(answer, "pages"):
        return [to_json(row) for row in answer]
    return json_format.MessageToDict(type(answer).pb(answer))


def describe(error):
    code = error.grpc_status_code
    return {
        "class": type(error).__name__,
        # REST has only the HTTP status, which several codes share.
        "code": code.name if code is not None else None,
        "reason": error.reason,
        "domain": error.domain,
        "metadata": dict(error.metadata or {}),
        "message": error.message,
    }


def call(clients, authority, row):
    token = row.get("token", "")
    key = (row["transport"], token)
    if key not in clients:
        clients[key] = connect(authority, *key)
    client, metadata = clients[key]
    try:
        answer = getattr(client, row["method"])(
            request=to_request(row["request"]), metadata=metadata, timeout=TIMEOUT_SECONDS, retry=None
        )
        return {"answer": to_json(answer)}
    except exceptions.GoogleAPICallError as error:
        return {"error": describe(error)}
    except ValueError as error:
        # The REST client itself rejects a name that matches no path.
        return {"error": {"class": type(error).__name__}}
    except GoogleAuthError as error:
        # After a 401, the REST session asks its credentials for a new token, which these cannot get.
        return {"error": {"class": type(error).__name__}}


def main():
    clients = {}
    for line in sys.stdin:
        print(json.dumps(call(clients, sys.argv[1], json.loads(line))), flush=True)


main()

/** Reasons to refuse a request before its call starts. */
import { Code } from "@connectrpc/connect";
import type { Reason } from "./reason.ts";

/** Reasons that apply before the server finds the call of a request. */
export const routingReasons = {
  ROUTE_NOT_FOUND: {
    code: Code.NotFound,
    cause: "No call has this path.",
    remedy:
      "Compare the path with the `google.api.http` option in the proto or with `GET /`. Check `/api/` and that no slash ends the path.",
  },
  METHOD_NOT_ALLOWED: {
    code: Code.Unimplemented,
    httpStatus: 405,
    cause: "The path exists, but not for this HTTP method.",
    remedy: "Use a method that the response header `allow` names.",
  },
  METHOD_UNKNOWN: {
    code: Code.Unimplemented,
    cause: "The HTTP method is not registered, or is CONNECT.",
    remedy: "Use GET, POST, QUERY, DELETE, PUT or PATCH.",
  },
  RPC_NOT_FOUND: {
    code: Code.Unimplemented,
    httpStatus: 404,
    cause: "No RPC has this name, or its service does not run on this server.",
    remedy: "List the services with `grpcurl … list`. Operator: check `--services`.",
  },
  SERVICE_UNKNOWN: {
    code: Code.NotFound,
    cause: "A health check names a service that this server does not have.",
    remedy: "Use a name from `grpc.health.v1.Health/List`, or none for the whole server.",
  },
  TARGET_INVALID: {
    code: Code.InvalidArgument,
    cause: "The path or the query is not valid percent-encoded UTF-8.",
    remedy: "Encode it with `encodeURIComponent` or its equivalent in your language.",
  },
  HTTP_INVALID: {
    code: Code.InvalidArgument,
    cause:
      "The bytes are not HTTP/1.1 or HTTP/2, the request names no host or several, a header occurs twice that must not (`authorization`, `content-type`, `idempotency-key`), it is a gRPC stream over HTTP/1.1, or it is of another version of Connect than 1.",
    remedy: "Check that `http` and `https` are not mixed up. Call gRPC over HTTP/2.",
  },
  HOST_NOT_ALLOWED: {
    code: Code.PermissionDenied,
    cause:
      "The request names a host that this server does not answer for. A web page may have sent it (DNS rebinding).",
    remedy: "Use `localhost` or `127.0.0.1`. Operator: add the name with `--allowed-hosts`.",
  },
  CROSS_SITE_REFUSED: {
    code: Code.PermissionDenied,
    cause: "A browser sent the request for a page of another origin.",
    remedy:
      "Call from the console or from a program. Operator: allow the origin, which the log names, with `--cors-origins`.",
  },
  METADATA_TOO_LARGE: {
    code: Code.ResourceExhausted,
    httpStatus: 431,
    cause: "All headers together exceed `--max-metadata-bytes`, or there are more than 200.",
    remedy:
      "Send fewer headers. A token has 4,500 bytes, so send only one. Operator: raise the limit here and at the proxy.",
  },
  REQUEST_TOO_SLOW: {
    code: Code.DeadlineExceeded,
    httpStatus: 408,
    cause: "The headers did not arrive within 15 seconds, or the body within 30.",
    remedy: "Check the network. Send large data as a stream.",
  },
} as const satisfies Record<string, Reason>;

/** Reasons that concern the headers and the body of a request. */
export const bodyReasons = {
  NOT_ACCEPTABLE: {
    code: Code.InvalidArgument,
    httpStatus: 406,
    cause: "`accept` does not contain a media type that the call can return.",
    remedy: "Accept `application/json`, or omit the header.",
  },
  MEDIA_TYPE_MISSING: {
    code: Code.InvalidArgument,
    cause: "A request by QUERY has no `content-type` (RFC 10008, section 2).",
    remedy:
      "Send `content-type: application/json`, or another type that the response header `accept-query` names.",
  },
  MEDIA_TYPE_UNSUPPORTED: {
    code: Code.InvalidArgument,
    httpStatus: 415,
    cause: "A request with a body has no `content-type`, or one that this call does not support.",
    remedy: "Send `content-type: application/json` (curl: `-H`).",
  },
  ENCODING_UNSUPPORTED: {
    code: Code.Unimplemented,
    httpStatus: 415,
    cause: "The body is compressed with something other than gzip (gRPC, gRPC-Web and Connect: gzip or br).",
    remedy: "Send gzip, or do not compress.",
  },
  ENCODING_INVALID: {
    code: Code.InvalidArgument,
    cause: "The body is not the gzip data that its header announces.",
    remedy: "Compress the body, or omit the header.",
  },
  ENCODING_MISSING: {
    code: Code.Internal,
    cause: "A gRPC message says that it is compressed, but no header says how.",
    remedy: "Fix the client: `grpc-encoding` is missing.",
  },
  BODY_TOO_LARGE: {
    code: Code.ResourceExhausted,
    httpStatus: 413,
    cause:
      "A body, or a message of a stream, exceeds the limit of its call, compressed or not. The limit follows from the rules of the request, and is `--max-message-bytes` if they set none. Or the messages of a compressed stream expand too far: then the metadata has `maxRatio`.",
    remedy:
      "Shorten the fields to what the rules of the call allow; with `maxRatio`, send the stream uncompressed. For data of any size, use the streaming call (`SignStream`, `UpdateFirmwareStream`). Operator: raise `--max-message-bytes`.",
  },
  BODY_UNEXPECTED: {
    code: Code.InvalidArgument,
    cause: "The request has a body, but this call has none.",
    remedy: "Put the fields into the path and the query.",
  },
  BODY_INCOMPLETE: {
    code: Code.InvalidArgument,
    cause: "A gRPC message ends before its announced length.",
    remedy: "Fix the client, or look for a proxy that cuts messages off.",
  },
  TIMEOUT_INVALID: {
    code: Code.InvalidArgument,
    cause: "`grpc-timeout` or `connect-timeout-ms` is not a duration.",
    remedy: "Send `30S` for gRPC, `30000` for Connect.",
  },
} as const satisfies Record<string, Reason>;

/** Reasons that concern the message in the body. */
export const messageReasons = {
  MESSAGE_MALFORMED: {
    code: Code.InvalidArgument,
    cause: "The bytes are not a Protobuf message of this type.",
    remedy: "Generate the client from the protos of this server, or use its reflection.",
  },
  MESSAGE_TOO_COMPLEX: {
    code: Code.InvalidArgument,
    cause:
      "A message has more values than `--max-message-elements`, more unknown fields than `--max-unknown-fields`, more than 100 nested messages, more than 200 nested JSON values, or a number of more than 1,000 digits.",
    remedy: "Send several smaller messages. Operator: raise the limit.",
  },
  JSON_INVALID: {
    code: Code.InvalidArgument,
    cause: "The body is not JSON, or not UTF-8.",
    remedy: "Correct the position that the message names. In a shell, put the body in single quotes.",
  },
  PARAMETER_UNKNOWN: {
    code: Code.InvalidArgument,
    cause: "The call has no such query parameter.",
    remedy: "Use a parameter that the message lists. Their names are lowerCamelCase.",
  },
  PARAMETER_DUPLICATE: {
    code: Code.InvalidArgument,
    cause: "A query parameter occurs more than once.",
    remedy: "Send it once.",
  },
  FIELD_CONTRADICTION: {
    code: Code.InvalidArgument,
    cause:
      "A field has different values in the path, the query and the body, or two fields of a oneof have values.",
    remedy: "Send it once.",
  },
  FIELD_INVALID: {
    code: Code.InvalidArgument,
    cause:
      "A field is missing, unknown, too long, of the wrong type, not base64, or not one of the known values.",
    remedy: "Correct each field in `fieldViolations` of `details`. The message names the valid values.",
  },
  KEY_INVALID: {
    code: Code.InvalidArgument,
    cause: "A public key has the wrong length or form, or fails the checks of its standard.",
    remedy: "Send the raw key in base64, or PEM as `publicKeyPem`, for the algorithm of the call.",
  },
  LENGTH_INVALID: {
    code: Code.InvalidArgument,
    cause: "A signature or ciphertext has a length that its algorithm does not produce.",
    remedy: "Check the algorithm, hexadecimal instead of base64, and truncated bytes.",
  },
  IDEMPOTENCY_KEY_INVALID: {
    code: Code.InvalidArgument,
    cause: "`Idempotency-Key` is empty, longer than 255 characters, or not printable ASCII.",
    remedy: "Send a UUID.",
  },
  IDEMPOTENCY_KEY_REUSED: {
    code: Code.AlreadyExists,
    cause: "The same `Idempotency-Key` was used for another request within 24 hours.",
    remedy: "Use a new key for each new request. Repeat a key only to retry.",
  },
} as const satisfies Record<string, Reason>;

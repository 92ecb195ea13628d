/** Reads the idempotency key of state-changing calls, so that their handlers can apply each change once. */
import { createHash } from "node:crypto";
import { getOption, toBinary } from "@bufbuild/protobuf";
import type { Interceptor, UnaryRequest } from "@connectrpc/connect";
import { idempotency_key } from "#gen/qsp/idempotency_pb.ts";
import { repeatableKey } from "../../calls/call-values.ts";
import { refuse } from "../../errors.ts";

const header = "idempotency-key";

/** Applies to every unary call declared to accept a key (proto/qsp/idempotency.proto). */
export function idempotencyInterceptor(): Interceptor {
  return (next) => (req) => {
    const key = req.stream ? null : req.header.get(header);
    if (key !== null && !req.stream && getOption(req.method, idempotency_key))
      req.contextValues.set(repeatableKey, { idempotencyKey: checkKey(key), requestHash: hashRequest(req) });
    return next(req);
  };
}

function checkKey(key: string): string {
  if (/^[\x20-\x7e]{1,255}$/.test(key)) return key;
  throw refuse(
    "IDEMPOTENCY_KEY_INVALID",
    `${header}: ${describeFault(key)}; use 1 to 255 printable ASCII characters, such as a UUID`,
    { field: header },
    [{ field: header, description: "must be 1 to 255 printable ASCII characters" }],
  );
}

function describeFault({ length }: string): string {
  if (length === 0) return "is empty";
  return length > 255 ? `has ${length} characters` : "contains characters other than printable ASCII";
}

function hashRequest({ method, message }: UnaryRequest): string {
  return createHash("sha256")
    .update(`${method.parent.typeName}/${method.name}\n`)
    .update(toBinary(method.input, message))
    .digest("hex");
}

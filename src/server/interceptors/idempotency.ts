/** Reads the idempotency key of state-changing calls, so that their handlers can apply each change once. */
import { createHash } from "node:crypto";
import { clone, getOption, toBinary } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import type { Interceptor, UnaryRequest } from "@connectrpc/connect";
import { idempotency_key } from "#gen/qsp/idempotency_pb.ts";
import { repeatableKey } from "../../calls/call-values.ts";
import { refuse } from "../../errors.ts";

const header = "idempotency-key";

/** Applies to every unary call declared to accept a key (proto/qsp/idempotency.proto). */
export function idempotencyInterceptor(): Interceptor {
  return (next) => (req) => {
    // HTTP/1.1 removes blanks at the ends of a value, HTTP/2 does not.
    const key = req.stream ? undefined : req.header.get(header)?.trim();
    if (key !== undefined && !req.stream && getOption(req.method, idempotency_key))
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
  const sorted = reflect(method.input, clone(method.input, message));
  sortMaps(sorted);
  return createHash("sha256")
    .update(`${method.parent.typeName}/${method.name}\n`)
    .update(toBinary(method.input, sorted.message))
    .digest("hex");
}

/** Sorts map entries: clients may send them in any order, and Go changes it with each retry. */
function sortMaps(message: ReflectMessage): void {
  for (const field of message.sortedFields) {
    if (field.fieldKind === "message" && message.isSet(field)) sortMaps(message.get(field));
    if (field.fieldKind !== "map") continue;
    const map = message.get(field);
    const entries = [...map].sort(([one], [other]) => (String(one) < String(other) ? -1 : 1));
    map.clear();
    for (const [key, value] of entries) map.set(key, value);
  }
}

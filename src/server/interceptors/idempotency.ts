/** Reads the idempotency key of calls that change something, so that their handlers can do it once. */
import { createHash } from "node:crypto";
import { toBinary } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, Interceptor, UnaryRequest } from "@connectrpc/connect";
import { createContextKey } from "@connectrpc/connect";
import { refuse } from "../../errors.ts";

/** A call that its caller may repeat. */
export interface RepeatableCall {
  /** 1 to 255 printable ASCII characters. */
  readonly idempotencyKey: string;
  /** SHA-256 of the RPC's name and its request, in hexadecimal. */
  readonly requestHash: string;
}

const header = "idempotency-key";

const repeatableKey = createContextKey<RepeatableCall | undefined>(undefined, {
  description: "repeatable call",
});

/** Tells under which idempotency key a call came; undefined if it has none. */
export function repeatableOf({ values }: Pick<HandlerContext, "values">): RepeatableCall | undefined {
  return values.get(repeatableKey);
}

/** Every unary call but those that declare to change nothing. */
export function idempotencyInterceptor(): Interceptor {
  return (next) => (req) => {
    const key = req.stream ? null : req.header.get(header);
    if (
      key !== null &&
      !req.stream &&
      req.method.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS
    )
      req.contextValues.set(repeatableKey, { idempotencyKey: checkKey(key), requestHash: hashRequest(req) });
    return next(req);
  };
}

function checkKey(key: string): string {
  if (/^[\x20-\x7e]{1,255}$/.test(key)) return key;
  throw refuse(
    "IDEMPOTENCY_KEY_INVALID",
    `${header}: has ${key.length} characters, or others than printable ASCII; give 1 to 255 of these`,
    { field: header },
    [{ field: header, description: "must be 1 to 255 printable ASCII characters" }],
  );
}

function hashRequest({ method, message }: UnaryRequest): string {
  return createHash("sha256")
    .update(`${method.parent.typeName}/${method.name}\n`)
    .update(toBinary(method.input, message))
    .digest("hex");
}

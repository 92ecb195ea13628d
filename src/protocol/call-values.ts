/** What the server finds out about a call before its handler runs. */
import { createContextKey, type HandlerContext } from "@connectrpc/connect";

/** Where handlers and interceptors find the address that a call came from. */
export const clientKey = createContextKey("unknown", { description: "client address" });

/** Tells which address a call came from. */
export function readClientAddress({ values }: Pick<HandlerContext, "values">): string {
  return values.get(clientKey);
}

/** What somebody may do. A device may do nothing but send its own readings. */
export type Role = "user" | "auditor" | "admin" | "device";

/** Who makes a call, as a valid token says. */
export interface Caller {
  readonly subject: string;
  readonly role: Role;
  readonly issuedAt: Date;
  readonly expiresAt: Date;
  /** How to learn that the token was revoked; undefined if tokens only expire. */
  readonly revocation?: Revocation;
}

/** Tells of the revocation of a token. */
export interface Revocation {
  /** The same for tokens that are revoked together: one check answers for all of them. */
  readonly group: string;
  /** Checks that the token has not been revoked. @throws a refusal with one of the TOKEN_… reasons */
  readonly check: () => Promise<void>;
}

/** Where handlers find the caller; undefined if the call needed no token. */
export const callerKey = createContextKey<Caller | undefined>(undefined, { description: "caller" });

/** Tells who makes a call that wants a token. @throws Error for one that does not, which is a bug */
export function requireCaller({ values }: Pick<HandlerContext, "values">): Caller {
  const caller = values.get(callerKey);
  if (caller === undefined) throw new Error("the call was not authenticated");
  return caller;
}

/** A call that its caller may repeat. */
export interface RepeatableRequest {
  /** 1 to 255 printable ASCII characters. */
  readonly idempotencyKey: string;
  /** SHA-256 of the RPC's name and its request, in hexadecimal. */
  readonly requestHash: string;
}

/** Where handlers find under which idempotency key a call came. */
export const repeatableKey = createContextKey<RepeatableRequest | undefined>(undefined, {
  description: "repeatable call",
});

/** Tells under which idempotency key a call came; undefined if it has none. */
export function repeatableOf({ values }: Pick<HandlerContext, "values">): RepeatableRequest | undefined {
  return values.get(repeatableKey);
}

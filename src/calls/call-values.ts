/** Call values that the server sets before the handler runs. */
import {
  type ContextKey,
  type ContextValues,
  createContextKey,
  type HandlerContext,
} from "@connectrpc/connect";

/** The values of one call. createContextValues would create three functions for each call. */
export class CallValues implements ContextValues {
  readonly #byKey: Record<symbol, unknown> = {};

  get<T>({ id, defaultValue }: ContextKey<T>): T {
    return id in this.#byKey ? (this.#byKey[id] as T) : defaultValue;
  }

  set<T>({ id }: ContextKey<T>, value: T): this {
    this.#byKey[id] = value;
    return this;
  }

  delete({ id }: ContextKey<unknown>): this {
    delete this.#byKey[id];
    return this;
  }
}

/** Context key for the client address. */
export const clientKey = createContextKey("unknown", { description: "client address" });

/** Returns the client address of a call. */
export function readClientAddress({ values }: Pick<HandlerContext, "values">): string {
  return values.get(clientKey);
}

/** What the server knows about a client's connection; undefined if it does not know, or without TLS. */
export interface ConnectionReport {
  readonly tls: boolean;
  /** "TLS 1.3". */
  readonly version?: string | undefined;
  /** IANA names, here and below. */
  readonly group?: string | undefined;
  readonly cipherSuite?: string | undefined;
  readonly alpn?: string | undefined;
  /** Whether the group combines a classical and a post-quantum key exchange. */
  readonly hybrid?: boolean | undefined;
  /** From the ClientHello, in the client's order. */
  readonly offeredGroups?: string[];
  readonly offeredSignatureAlgorithms?: string[];
  readonly terminatedBy?: "server" | "proxy" | undefined;
}

/** Context key for the function that describes the client's connection. */
export const connectionKey = createContextKey((): ConnectionReport => ({ tls: false }), {
  description: "connection",
});

/** Returns the origin of a call, for records. */
export function readOrigin({ values }: Pick<HandlerContext, "values">) {
  return { clientAddress: values.get(clientKey), requestId: values.get(requestIdKey) };
}

/** Context key for the request ID, which the answer carries too; empty for work outside a call. */
export const requestIdKey = createContextKey("", { description: "request ID" });

/** The role of a caller. A device may only send its own readings. */
export type Role = "user" | "auditor" | "admin" | "device";

/** The caller that a valid token names. */
export interface Caller {
  readonly subject: string;
  readonly role: Role;
  /**
   * The scopes of an access token; undefined for a token without scopes, which may do everything that its
   * role allows.
   */
  readonly scopes?: readonly string[] | undefined;
  /** An access token's client, which may act for the subject, and its ID; undefined for any other token. */
  readonly access?: { readonly clientId: string; readonly tokenId: string } | undefined;
  readonly issuedAt: Date;
  readonly expiresAt: Date;
  /** Checks for revocation of the token; undefined if tokens only expire. */
  readonly revocation?: Revocation;
}

/** Checks whether a token has been revoked. */
export interface Revocation {
  /** Equal for tokens that are revoked together, so that one check serves all of them. */
  readonly group: string;
  /**
   * Checks that the token has not been revoked.
   *
   * @throws a refusal with one of the TOKEN_… reasons
   */
  readonly check: () => Promise<void>;
}

/** Context key for the caller; undefined if the call needs no token. */
export const callerKey = createContextKey<Caller | undefined>(undefined, { description: "caller" });

/**
 * Returns the caller of a call that needs a token.
 *
 * @throws Error for any other call, which is a bug
 */
export function requireCaller({ values }: Pick<HandlerContext, "values">): Caller {
  const caller = values.get(callerKey);
  if (caller === undefined) throw new Error("the call was not authenticated");
  return caller;
}

/** A call with an idempotency key, which the caller may retry. */
export interface RepeatableRequest {
  /** 1 to 255 printable ASCII characters. */
  readonly idempotencyKey: string;
  /** SHA-256 of the RPC name and the request, in hexadecimal. */
  readonly requestHash: string;
}

/** Context key for a call's idempotency key. */
export const repeatableKey = createContextKey<RepeatableRequest | undefined>(undefined, {
  description: "repeatable call",
});

/** Authenticates callers by their tokens. */
import type { ConnectError } from "@connectrpc/connect";
import { type ReasonName, refuse } from "../errors.ts";
import type { Issuer, TokenCheck, TokenClaims } from "./issuer.ts";
import type { UserRole, UserStore } from "./users.ts";

/** The refusal reason for each failed token check. */
const refusals: Readonly<Record<Extract<TokenCheck, { ok: false }>["reason"], ReasonName>> = {
  MALFORMED: "TOKEN_MALFORMED",
  WRONG_ALGORITHM: "TOKEN_MALFORMED",
  UNKNOWN_KEY: "TOKEN_KEY_UNKNOWN",
  BAD_SIGNATURE: "TOKEN_SIGNATURE_INVALID",
  EXPIRED: "TOKEN_EXPIRED",
  NOT_YET_VALID: "TOKEN_EXPIRED",
};

/** The holder of a token, and their role. */
export interface TokenHolder extends TokenClaims {
  /** The owner of the holder's records: see User. For a device or a user of an open server, it is the subject. */
  readonly userId: string;
  readonly role: UserRole | "device";
}

/** The value of `use` in the header of a device's token. */
export const deviceUse = "iot";

/**
 * Authenticates a caller by the `authorization` header of a call (RFC 6750, section 2.1).
 *
 * @param users the users that must include the token's subject; without it, a valid token is enough.
 * @throws TOKEN_MISSING, TOKEN_MALFORMED, TOKEN_KEY_UNKNOWN, TOKEN_SIGNATURE_INVALID, TOKEN_EXPIRED, TOKEN_REVOKED, RECORD_DAMAGED
 */
export async function authenticate(
  issuer: Issuer,
  authorization: string | null,
  users?: UserStore,
): Promise<TokenHolder> {
  const claims = await readClaims(issuer, authorization);
  if (claims.use === deviceUse) return { ...claims, userId: claims.subject, role: "device" };
  if (users === undefined) return { ...claims, userId: claims.subject, role: "user" };
  // Read at each call, so that a removed user loses access at once.
  const user = await users.find(claims.subject);
  if (user !== undefined && user.generation === claims.generation)
    return { ...claims, userId: user.userId, role: user.role };
  throw tokenRevoked(claims.subject);
}

/** Names the tokens that are revoked together: those of one generation of a user, signed by one key. */
export function nameRevocationGroup({ subject, use = "", generation = "", keyId }: TokenClaims): string {
  return JSON.stringify([subject, use, generation, keyId]);
}

/**
 * Checks that an accepted token has not been revoked since. It does not verify the signature.
 *
 * @throws TOKEN_KEY_UNKNOWN, TOKEN_REVOKED, RECORD_DAMAGED
 */
export async function requireNotRevoked(
  issuer: Issuer,
  { subject, use, generation, keyId }: TokenClaims,
  users?: UserStore,
): Promise<void> {
  if (!issuer.acceptsKey(keyId))
    throw refuse("TOKEN_KEY_UNKNOWN", "the token is refused: the key that signed it is no longer accepted");
  if (use === deviceUse || users === undefined) return;
  if ((await users.find(subject))?.generation !== generation) throw tokenRevoked(subject);
}

function tokenRevoked(subject: string): ConnectError {
  return refuse(
    "TOKEN_REVOKED",
    `the token of ${subject} is no longer accepted: the user was removed or has a new password; log in again`,
    { subject },
  );
}

async function readClaims(issuer: Issuer, authorization: string | null): Promise<TokenClaims> {
  if (authorization === null) {
    throw refuse("TOKEN_MISSING", "this call needs a token: send authorization: Bearer <token>");
  }
  const token = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
  if (token === undefined) {
    throw refuse("TOKEN_MALFORMED", "the authorization header does not have the form: Bearer <token>");
  }
  const check = await issuer.check(token);
  if (!check.ok) throw refuse(refusals[check.reason], `the token is refused: ${check.message}`);
  return check;
}

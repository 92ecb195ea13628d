/** Authenticates callers by their tokens. */
import type { ConnectError } from "@connectrpc/connect";
import { type ReasonName, refuse } from "../errors.ts";
import type { ClientStore } from "./clients.ts";
import type { Issuer, TokenCheck, TokenClaims } from "./issuer.ts";
import type { Revocations } from "./revocations.ts";
import { findOwnerName, type UserRole, type UserStore } from "./users.ts";

/** Refusal reason of each failed token check. */
const refusals: Readonly<Record<Extract<TokenCheck, { ok: false }>["reason"], ReasonName>> = {
  MALFORMED: "TOKEN_MALFORMED",
  WRONG_ALGORITHM: "TOKEN_MALFORMED",
  UNKNOWN_KEY: "TOKEN_KEY_UNKNOWN",
  BAD_SIGNATURE: "TOKEN_SIGNATURE_INVALID",
  EXPIRED: "TOKEN_EXPIRED",
  NOT_YET_VALID: "TOKEN_EXPIRED",
};

export interface TokenHolder extends TokenClaims {
  /**
   * Owner of the holder's records: see User. For a device, or a user of an open server, it equals the
   * subject.
   */
  readonly userId: string;
  readonly role: UserRole | "device";
  /** Scopes of an access token; undefined for a log-in token. */
  readonly scopes: readonly string[] | undefined;
}

/**
 * Finds the owner of a device's record.
 *
 * @returns undefined if the device was removed
 * @throws RecordDamagedError
 */
export type FindDeviceOwner = (deviceId: string) => Promise<string | undefined>;

/** Accounts against which tokens are checked. */
export interface Accounts {
  /** Users that must include a token's subject; if undefined, any valid token is enough. */
  readonly users: UserStore | undefined;
  readonly clients: ClientStore;
  readonly revocations: Revocations;
  readonly findDeviceOwner: FindDeviceOwner;
}

/** Value of `use` in the header of a device token. */
export const deviceUse = "iot";

/**
 * Authenticates a caller by its `authorization` header (RFC 6750, section 2.1).
 *
 * @param audience must be among an access token's audiences
 * @throws TOKEN_MISSING, TOKEN_MALFORMED, TOKEN_KEY_UNKNOWN, TOKEN_SIGNATURE_INVALID, TOKEN_EXPIRED,
 *   TOKEN_AUDIENCE_MISMATCH, TOKEN_REVOKED, RECORD_DAMAGED
 */
export async function authenticate(
  issuer: Issuer,
  accounts: Accounts,
  authorization: string | null,
  audience: string | undefined,
): Promise<TokenHolder> {
  const claims = await readClaims(issuer, authorization);
  const { access } = claims;
  if (access !== undefined && (audience === undefined || !access.audiences.includes(audience)))
    throw refuse(
      "TOKEN_AUDIENCE_MISMATCH",
      `the token is for ${access.audiences.join(" and ")}, not for this server`,
      { audiences: access.audiences.join(" ") },
    );
  const holder = await findHolder(accounts, claims);
  if (holder !== undefined) return holder;
  throw tokenRevoked(claims);
}

/**
 * Finds the holder of a verified token. Reads the store on each call, so that a removed user, client or device
 * loses access at once.
 *
 * @returns undefined if the token was revoked, its user or client was removed or changed, or its device or
 *   the device's owner was removed
 * @throws RECORD_DAMAGED
 */
export async function findHolder(
  { users, clients, revocations, findDeviceOwner }: Accounts,
  claims: TokenClaims,
): Promise<TokenHolder | undefined> {
  const { subject, use, generation, access } = claims;
  if (use === deviceUse) {
    const owner = await findDeviceOwner(subject);
    if (owner === undefined || (await findOwnerName(users, owner)) === undefined) return undefined;
    return { ...claims, userId: subject, role: "device", scopes: undefined };
  }
  const scopes = access?.scopes;
  if (access !== undefined) {
    const { clientId, clientGeneration, tokenId, origins, earlierActors } = access;
    const client = await clients.find(clientId);
    if (client?.generation !== clientGeneration || (await revocations.includesAny([tokenId, ...origins])))
      return undefined;
    for (const actor of earlierActors)
      if ((await clients.find(actor.clientId))?.generation !== actor.clientGeneration) return undefined;
    if (subject === clientId) return { ...claims, userId: client.userId, role: client.role, scopes };
  }
  if (users === undefined) return { ...claims, userId: subject, role: "user", scopes };
  const user = await users.find(subject);
  if (user === undefined || user.generation !== generation) return undefined;
  return { ...claims, userId: user.userId, role: user.role, scopes };
}

/** Names tokens that are revoked together: those for one user generation that were signed by one key. */
export function nameRevocationGroup({ subject, use, generation, keyId, access }: TokenClaims): string {
  return JSON.stringify([subject, use ?? "", generation ?? "", keyId, access?.tokenId ?? ""]);
}

/**
 * Checks that an accepted token has not been revoked since. Does not verify the signature.
 *
 * @throws TOKEN_KEY_UNKNOWN, TOKEN_REVOKED, RECORD_DAMAGED
 */
export async function requireNotRevoked(
  issuer: Issuer,
  accounts: Accounts,
  claims: TokenClaims,
): Promise<void> {
  if (!issuer.acceptsKey(claims.keyId))
    throw refuse("TOKEN_KEY_UNKNOWN", "the token is refused: the key that signed it is no longer accepted");
  if ((await findHolder(accounts, claims)) === undefined) throw tokenRevoked(claims);
}

function tokenRevoked(claims: TokenClaims): ConnectError {
  const { subject } = claims;
  const why = explainRevocation(claims);
  return refuse("TOKEN_REVOKED", `the token of ${subject} is no longer accepted: ${why}`, { subject });
}

function explainRevocation({ use, access }: TokenClaims): string {
  if (use === deviceUse) return "the device or its owner was removed";
  if (access === undefined) return "the user was removed or has a new password";
  return "it was revoked, or its client or user was removed or changed; request a new one";
}

/**
 * Reads the token in an `authorization` header.
 *
 * @returns undefined if it does not have the form of RFC 6750
 */
export function readBearerToken(authorization: string): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
}

async function readClaims(issuer: Issuer, authorization: string | null): Promise<TokenClaims> {
  if (authorization === null) {
    throw refuse("TOKEN_MISSING", "this call needs a token: send authorization: Bearer <token>");
  }
  const token = readBearerToken(authorization);
  if (token === undefined) {
    throw refuse("TOKEN_MALFORMED", "the authorization header does not have the form: Bearer <token>");
  }
  const check = await issuer.check(token);
  if (!check.ok) throw refuse(refusals[check.reason], `the token is refused: ${check.message}`);
  return check;
}

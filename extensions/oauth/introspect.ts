/** Introspects (RFC 7662) and revokes (RFC 7009) tokens for clients. */
import { refuse } from "../../src/errors.ts";
import { type Accounts, findHolder, type TokenHolder } from "../../src/identity/authenticate.ts";
import type { StoredClient } from "../../src/identity/clients.ts";
import type { Issuer, TokenClaims } from "../../src/identity/issuer.ts";
import type { RevocationInput } from "../../src/identity/revocations.ts";
import type { ClientCall } from "./client-call.ts";
import { reasons } from "./reasons.ts";

export interface IntrospectDeps {
  readonly issuer: Issuer;
  readonly accounts: Accounts;
}

/**
 * Finds a token's holder.
 *
 * @returns undefined if the token is not valid or this client may not see it: RFC 7662, section 4, warns of
 *   clients that scan for tokens
 */
export async function introspect(
  { issuer, accounts }: IntrospectDeps,
  call: ClientCall,
  token: string,
): Promise<TokenHolder | undefined> {
  const check = await issuer.check(token);
  if (!check.ok) return undefined;
  if (mayKnow(call.client, check)) return findHolder(accounts, check);
  // The client gets no information, but the log shows the operator that it holds a token not meant for it.
  call.isAbout(check);
  call.refused(reasons.clientUnauthorized);
  return undefined;
}

function mayKnow({ name, resources }: StoredClient, { access }: TokenClaims): boolean {
  // Anyone may ask pqc.TokenService/VerifyToken about log-in tokens.
  if (access === undefined || access.clientId === name) return true;
  return access.audiences.some((audience) => audience === name || resources.includes(audience));
}

/**
 * Revokes a client's token. A token that is no longer valid needs no revocation (RFC 7009, section 2.2).
 *
 * @throws CLIENT_UNAUTHORIZED for a valid token that was not issued to the client
 */
export async function revoke(
  { issuer, accounts }: IntrospectDeps,
  { client, isAbout }: ClientCall,
  token: string,
  origin: RevocationInput["origin"],
): Promise<void> {
  const check = await issuer.check(token);
  if (!check.ok) return;
  isAbout(check);
  if (check.access?.clientId !== client.name)
    throw refuse(reasons.clientUnauthorized, `the token was not issued to the client ${client.name}`);
  const { tokenId } = check.access;
  await accounts.revocations.add({ tokenId, client: client.name, origin });
}

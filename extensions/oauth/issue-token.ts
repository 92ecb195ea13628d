/** Issues access tokens, for a client itself or on behalf of a subject. */
import { refuse, refuseField } from "../../src/errors.ts";
import {
  type AccessClaims,
  type Actor,
  maxAudiences,
  maxOrigins,
  splitList,
} from "../../src/identity/access-claims.ts";
import { type Accounts, findHolder, type TokenHolder } from "../../src/identity/authenticate.ts";
import type { StoredClient } from "../../src/identity/clients.ts";
import type { AccessTokenInput, IssuedAccessToken, Issuer } from "../../src/identity/issuer.ts";
import type { ClientCall } from "./client-call.ts";
import { reasons } from "./reasons.ts";

/** RFC 6749, section 4.4, and RFC 8693, section 2.1. */
export const grantTypes = {
  clientCredentials: "client_credentials",
  tokenExchange: "urn:ietf:params:oauth:grant-type:token-exchange",
} as const;

/** RFC 8693, section 3: our access tokens are JWTs, so both types apply. */
export const accessTokenType = "urn:ietf:params:oauth:token-type:access_token";
const tokenTypes: readonly string[] = [accessTokenType, "urn:ietf:params:oauth:token-type:jwt"];

/** A client's request. */
export interface TokenRequest {
  readonly grantType: string;
  /** Separated by spaces; empty for all possible scopes. */
  readonly scope: string;
  readonly resource: readonly string[];
  readonly audience: readonly string[];
  readonly subjectToken: string;
  readonly subjectTokenType: string;
  readonly requestedTokenType: string;
  readonly actorToken: string;
  readonly actorTokenType: string;
}

export interface IssueTokenDeps {
  readonly issuer: Issuer;
  readonly accounts: Accounts;
  /** This issuer's URL. */
  readonly issuerUrl: string;
}

/** A token and what it was issued for. */
export interface GrantedToken extends IssuedAccessToken {
  readonly subject: string;
  readonly scopes: readonly string[];
  readonly audiences: readonly string[];
  readonly isExchange: boolean;
}

/**
 * Issues a token to an authenticated client.
 *
 * @throws GRANT_TYPE_UNSUPPORTED, CLIENT_UNAUTHORIZED, SUBJECT_TOKEN_INVALID, SCOPE_INVALID,
 *   AUDIENCE_INVALID, FIELD_INVALID
 */
export async function issueToken(
  deps: IssueTokenDeps,
  call: ClientCall,
  request: TokenRequest,
): Promise<GrantedToken> {
  const { client } = call;
  const isExchange = request.grantType === grantTypes.tokenExchange;
  if (!isExchange && request.grantType !== grantTypes.clientCredentials)
    throw refuse(
      reasons.grantTypeUnsupported,
      `grant_type must be ${Object.values(grantTypes).join(" or ")}`,
    );
  const subject = isExchange ? await requireSubject(deps, call, request) : undefined;
  const scopes = chooseScopes(client, subject, request.scope);
  const audiences = chooseAudiences(deps, client, request);
  const input: AccessTokenInput = {
    subject: subject?.subject ?? client.name,
    generation: subject?.generation,
    audiences,
    clientId: client.name,
    clientGeneration: client.generation,
    scopes,
    // An exchange must not extend a token's life, neither past its expiry nor past a revocation.
    notAfter: subject?.expiresAt,
    origins: subject?.access ? [subject.access.tokenId, ...subject.access.origins] : [],
    earlierActors: subject?.access ? listActors(subject.subject, subject.access) : [],
  };
  const issued = await deps.issuer.issueAccessToken(input);
  if (issued.expiresAt <= issued.issuedAt)
    throw refuse(reasons.subjectTokenInvalid, "subject_token: expired during the exchange");
  return { ...issued, subject: input.subject, scopes, audiences, isExchange };
}

/** Finds the holder of the token to exchange. */
async function requireSubject(
  { issuer, accounts, issuerUrl }: IssueTokenDeps,
  { client, isAbout }: ClientCall,
  request: TokenRequest,
): Promise<TokenHolder> {
  if (!client.mayExchange)
    throw refuse(reasons.clientUnauthorized, `the client ${client.name} may not exchange tokens`);
  const { subjectToken, subjectTokenType, requestedTokenType, actorToken, actorTokenType } = request;
  if (actorToken !== "") throw refuseField("actor_token", "is not supported: the client itself is the actor");
  // RFC 8693, section 2.1: it must not be sent without actor_token.
  if (actorTokenType !== "")
    throw refuseField("actor_token_type", "must be absent without actor_token, which is not supported");
  if (subjectToken === "") throw refuseField("subject_token", "must be the token to exchange");
  if (!tokenTypes.includes(subjectTokenType))
    throw refuseField("subject_token_type", `must be ${tokenTypes.join(" or ")}`);
  if (requestedTokenType !== "" && !tokenTypes.includes(requestedTokenType))
    throw refuseField("requested_token_type", `must be ${tokenTypes.join(" or ")}`);
  const check = await issuer.check(subjectToken);
  if (!check.ok) throw refuse(reasons.subjectTokenInvalid, `subject_token: ${check.message}`);
  isAbout(check);
  // A server that received a token must not exchange it for one with a wider reach.
  const meant = [issuerUrl, client.name, ...client.resources];
  if (check.access && !check.access.audiences.some((audience) => meant.includes(audience)))
    throw refuse(reasons.subjectTokenInvalid, "subject_token: is neither for this server nor for the client");
  if (check.access && check.access.origins.length >= maxOrigins)
    throw refuse(
      reasons.subjectTokenInvalid,
      `subject_token: is the last of a chain of ${maxOrigins + 1} tokens, the maximum`,
    );
  const holder = await findHolder(accounts, check);
  if (holder === undefined) throw refuse(reasons.subjectTokenInvalid, "subject_token: the token was revoked");
  if (holder.role === "device") throw refuse(reasons.subjectTokenInvalid, "subject_token: is a device token");
  if (check.access && check.subject === check.access.clientId && check.subject !== client.name)
    throw refuse(reasons.subjectTokenInvalid, "subject_token: is another client's own token");
  // An open server gives anyone a token with any name.
  if (check.access === undefined && (await accounts.clients.find(check.subject)))
    throw refuse(reasons.subjectTokenInvalid, "subject_token: its subject has the name of a client");
  return holder;
}

/** Clients that already acted for the subject, latest first. */
function listActors(subject: string, access: AccessClaims): readonly Actor[] {
  const { clientId, clientGeneration, earlierActors } = access;
  return subject === clientId ? [] : [{ clientId, clientGeneration }, ...earlierActors];
}

/** The scopes that client and subject share, or the requested subset. */
function chooseScopes(client: StoredClient, subject: TokenHolder | undefined, requested: string): string[] {
  const possible = client.scopes.filter((scope) => subject?.scopes?.includes(scope) ?? true);
  // The claim would be omitted, and a service could take the token for one that no scope limits.
  if (possible.length === 0 && subject?.scopes !== undefined && subject.scopes.length > 0)
    throw refuse(reasons.scopeInvalid, "the client has none of the scopes of this token");
  const wanted = [...new Set(splitList(requested))];
  if (wanted.length === 0) return [...possible];
  const missing = wanted.filter((scope) => !possible.includes(scope));
  if (missing.length === 0) return wanted;
  const whose = subject?.scopes === undefined ? "the client" : "the client with this token";
  throw refuse(reasons.scopeInvalid, `${whose} may not request the scope ${missing.join(" ")}`, {
    scope: missing.join(" "),
  });
}

function chooseAudiences(
  { issuerUrl }: IssueTokenDeps,
  client: StoredClient,
  { resource, audience }: TokenRequest,
): string[] {
  const wanted = [...new Set([...resource, ...audience])];
  if (wanted.length === 0) return [issuerUrl];
  if (wanted.length > maxAudiences)
    throw refuse(reasons.audienceInvalid, `a token can have at most ${maxAudiences} audiences`);
  // RFC 8707, section 2: an absolute URI without a fragment.
  const wrong = resource.find((url) => !URL.canParse(url) || url.includes("#"));
  if (wrong !== undefined)
    throw refuse(reasons.audienceInvalid, `resource: "${wrong}" is not an absolute URL without a fragment`);
  const missing = wanted.find((name) => name !== issuerUrl && !client.audiences.includes(name));
  if (missing === undefined) return wanted;
  throw refuse(reasons.audienceInvalid, `the client may not request tokens for "${missing}"`, {
    audience: missing,
  });
}

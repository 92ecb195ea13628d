/** Access token claims (RFC 9068, section 2.2), and this server's additional claims. */
import { isJsonObject, type JsonObject, type JsonValue } from "../crypto/strict-json.ts";

/** A token's claims without its times. */
export interface TokenContent extends JsonObject {
  sub: string;
}

/** Claims of an access token besides its subject and times. */
export interface AccessClaims {
  /** Servers that may accept the token. */
  readonly audiences: readonly string[];
  /** The client to which the token was issued. */
  readonly clientId: string;
  /** The client's generation when the token was issued: see clients.ts. */
  readonly clientGeneration: string;
  readonly scopes: readonly string[];
  /** Unique among all tokens. */
  readonly tokenId: string;
  /**
   * Clients that exchanged the token earlier, latest first. The token ends when any of them is removed or
   * changed.
   */
  readonly earlierActors: readonly Actor[];
  /** IDs of the tokens from which it was exchanged. Revoking any of them revokes this token. */
  readonly origins: readonly string[];
}

/** A client that acted for the subject. */
export interface Actor {
  readonly clientId: string;
  /** Its generation at that time. */
  readonly clientGeneration: string;
}

/** Maximum audiences of a token. */
export const maxAudiences = 10;

/** Maximum ancestors of an access token: each exchange adds one. */
export const maxOrigins = 4;

/**
 * Converts claims to a token payload. A client's own token has no user generation; the client's generation
 * applies.
 */
export function toAccessPayload(
  input: AccessClaims & { readonly subject: string; readonly generation: string | undefined },
  issuerUrl: string,
): TokenContent {
  const { audiences, clientId, clientGeneration, scopes, tokenId, subject, generation, origins } = input;
  const [audience] = audiences;
  return {
    iss: issuerUrl,
    sub: subject,
    // RFC 7519, section 4.1.3: a single audience may be a string, which is what most libraries write.
    aud: audiences.length === 1 && audience !== undefined ? audience : [...audiences],
    client_id: clientId,
    // RFC 8693, section 4.2: a list of scopes is never empty.
    ...(scopes.length > 0 && { scope: scopes.join(" ") }),
    jti: tokenId,
    cgen: clientGeneration,
    ...(generation !== undefined && { gen: generation }),
    ...(origins.length > 0 && { origins: [...origins] }),
    // RFC 8693, section 4.1: the client acts for the subject.
    ...(subject !== clientId && { act: { sub: clientId, ...nestActors(input.earlierActors) } }),
  };
}

/** Nests actors as in RFC 8693, section 4.1: the latest outermost, the first innermost. */
function nestActors([actor, ...earlier]: readonly Actor[]): JsonObject {
  if (actor === undefined) return {};
  return { act: { sub: actor.clientId, cgen: actor.clientGeneration, ...nestActors(earlier) } };
}

/**
 * Lists the actors before the current one, latest first.
 *
 * @returns undefined for a malformed claim
 */
function listEarlierActors(act: JsonValue | undefined): Actor[] | undefined {
  const actors: Actor[] = [];
  let at = innerActor(act);
  while (at !== undefined) {
    const { sub, cgen } = isJsonObject(at) ? at : {};
    if (typeof sub !== "string" || typeof cgen !== "string" || actors.length >= maxOrigins) return undefined;
    actors.push({ clientId: sub, clientGeneration: cgen });
    at = innerActor(at);
  }
  return actors;
}

function innerActor(act: JsonValue | undefined): JsonValue | undefined {
  return isJsonObject(act) ? act.act : undefined;
}

/**
 * Reads the claims of a token whose signature has been verified.
 *
 * @param issuerUrl this issuer's URL, which the token must name
 * @returns the claims, or the problem
 */
export function readAccessClaims(payload: JsonObject, issuerUrl: string | undefined): AccessClaims | string {
  const { iss, aud, client_id: clientId, cgen: clientGeneration, scope = "", jti: tokenId } = payload;
  if (issuerUrl === undefined || iss !== issuerUrl) return "iss is not the URL of this issuer";
  const audiences = Array.isArray(aud) ? aud : [aud];
  if (audiences.length === 0 || !audiences.every((one) => typeof one === "string"))
    return "aud must be a string or a list of strings";
  if (typeof clientId !== "string" || typeof clientGeneration !== "string")
    return "client_id and cgen must be strings";
  if (typeof scope !== "string" || typeof tokenId !== "string") return "scope and jti must be strings";
  const { act, origins = [] } = payload;
  const earlierActors = listEarlierActors(act);
  if (earlierActors === undefined) return "act must be an actor";
  if (!Array.isArray(origins) || !origins.every((one) => typeof one === "string"))
    return "origins must be a list of strings";
  return { audiences, clientId, clientGeneration, scopes: splitList(scope), tokenId, earlierActors, origins };
}

/** Splits a space-separated list (RFC 6749, section 3.3). */
export function splitList(text: string): string[] {
  return text.split(" ").filter((part) => part !== "");
}

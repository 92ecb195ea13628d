/** A route's requirements for tokens, from Envoy's context extensions (CheckSettings.context_extensions). */
import { LRUCache } from "lru-cache";
import { excerpt } from "../../src/errors/shorten.ts";
import { splitList } from "../../src/identity/access-claims.ts";

/** The requirements of one route. */
export interface Requirements {
  /** An audience that the token must name. */
  readonly audience: string;
  /** Scopes that the token must all have. */
  readonly scopes: readonly string[];
  /** Roles, one of which the subject must have; empty for any role. */
  readonly roles: readonly string[];
  /** Whether the token is forwarded upstream, in addition to the caller's identity. */
  readonly forwardsToken: boolean;
}

/** Maximum characters of a route's extensions, names and values together. Callers can send any. */
const maxExtensionCharacters = 4096;

/** Names that a route may set. */
const names = ["audience", "scopes", "roles", "forward-token"];

/** Cached requirements. An Envoy configuration has few routes. */
const known = new LRUCache<string, Requirements>({ max: 1000 });

/**
 * Finds a route's requirements.
 *
 * @param defaultAudience this server's URL
 * @returns the requirements, or the problem with the route
 */
export function findRequirements(
  extensions: Readonly<Record<string, string>>,
  defaultAudience: string | undefined,
): Requirements | string {
  const key = JSON.stringify([extensions, defaultAudience]);
  const before = known.get(key);
  if (before !== undefined) return before;
  const requirements = readRequirements(extensions, defaultAudience);
  // Callers can send anything, so invalid or oversized requirements are not cached.
  if (typeof requirements !== "string") known.set(key, requirements);
  return requirements;
}

/** Parses the requirements. Unknown names are errors: a misspelt one must not weaken a route. */
function readRequirements(
  extensions: Readonly<Record<string, string>>,
  defaultAudience: string | undefined,
): Requirements | string {
  const characters = Object.entries(extensions).reduce(
    (sum, [name, value]) => sum + name.length + value.length,
    0,
  );
  if (characters > maxExtensionCharacters)
    return `the route has context extensions of ${characters} characters; the limit is ${maxExtensionCharacters}`;
  const unknown = Object.keys(extensions).find((name) => !names.includes(name));
  if (unknown !== undefined)
    return `the route has the unknown context extension "${excerpt(unknown)}"; use ${names.join(", ")}`;
  const empty = Object.keys(extensions).find((name) => extensions[name]?.trim() === "");
  if (empty !== undefined) return `the route's context extension ${empty} is empty`;
  const {
    audience = defaultAudience,
    scopes = "",
    roles = "",
    "forward-token": forward = "false",
  } = extensions;
  if (audience === undefined) return "the route names no audience, and the server has no --issuer-url";
  if (forward !== "true" && forward !== "false")
    return 'the context extension forward-token must be "true" or "false"';
  return { audience, scopes: splitList(scopes), roles: splitList(roles), forwardsToken: forward === "true" };
}

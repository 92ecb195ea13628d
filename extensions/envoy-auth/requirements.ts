/** The demands of a route of Envoy on a token: its context extensions (CheckSettings.context_extensions). */
import { LRUCache } from "lru-cache";
import { excerpt } from "../../src/errors/shorten.ts";
import { splitList } from "../../src/identity/access-claims.ts";

/** The demands of one route. */
export interface Requirements {
  /** An audience that the token must name. */
  readonly audience: string;
  /** The scopes that the token must have, all of them. */
  readonly scopes: readonly string[];
  /** The roles of which the subject must have one; any if empty. */
  readonly roles: readonly string[];
  /** Whether the upstream gets the token, besides the name of its holder. */
  readonly forwardsToken: boolean;
}

/** The longest extensions of a route, names and values together, in characters. Callers can send any. */
const maxExtensionCharacters = 4096;

/** The names that a route may set. */
const names = ["audience", "scopes", "roles", "forward-token"];

/** The demands of routes that asked before. A configuration of Envoy has few. */
const known = new LRUCache<string, Requirements>({ max: 1000 });

/**
 * Finds the demands of a route.
 *
 * @param defaultAudience the URL of this server
 * @returns the demands, or what is wrong with the route
 */
export function findRequirements(
  extensions: Readonly<Record<string, string>>,
  defaultAudience: string | undefined,
): Requirements | string {
  const key = JSON.stringify([extensions, defaultAudience]);
  const before = known.get(key);
  if (before !== undefined) return before;
  const requirements = readRequirements(extensions, defaultAudience);
  // Callers can send any demands. Faulty ones, including those that are too large, take no memory.
  if (typeof requirements !== "string") known.set(key, requirements);
  return requirements;
}

/** Reads the demands. A name that is misspelt must not make a route weaker than its author meant. */
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
  if (empty !== undefined) return `the context extension ${empty} of the route is empty`;
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

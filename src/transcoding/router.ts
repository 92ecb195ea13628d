/**
 * Finds the route of a request in a trie of path segments. If a more specific branch does not match, the
 * search backtracks to a less specific one. The path convention decides whether it also backtracks if the more
 * specific template lacks the request's method.
 *
 * The router reads the raw request target, so an encoded slash never splits a segment. It prefers a literal
 * to `*`, `*` to `**`, and a path with a verb to one without.
 */
import { refuse } from "../errors.ts";
import type { Template, Variable } from "./template.ts";

/** What the router needs to know about a route. */
export interface Routable {
  /** The HTTP method in upper case, or "*" for any. */
  readonly httpMethod: string;
  readonly template: Template;
  /** Names the route in errors: its RPC and binding. */
  readonly origin: string;
}

/** A matching route, with the text of each variable. */
export interface RouteMatch<R> {
  readonly route: R;
  readonly variables: ReadonlyMap<Variable, string>;
}

/** A match, or the methods of the path (none if the path is unknown). */
export type RouteResult<R> =
  | RouteMatch<R>
  | { readonly route: undefined; readonly methods: readonly string[] };

interface Node<R> {
  readonly literals: Map<string, Node<R>>;
  one: Node<R> | undefined;
  rest: Node<R> | undefined;
  /** Routes by verb (empty for none) and HTTP method. */
  readonly routes: Map<string, Map<string, R>>;
}

export interface Router<R> {
  match(httpMethod: string, rawPath: string): RouteResult<R>;
}

/**
 * How a path matches templates.
 *
 * - "google": if several match, the most specific one that has the method, as in Google's transcoders. %2F stays
 *   encoded in the values of multi-segment variables (google/api/http.proto).
 * - "openapi": if several match, the most specific one, even without the method (OpenAPI 3.1.1, section 4.8.8.2:
 *   concrete paths are matched before templated ones). %2F is a slash in all values, because generated clients
 *   encode the slashes of a path parameter.
 */
export type PathConvention = "google" | "openapi";

/**
 * Builds a router.
 *
 * @param convention defaults to "google"
 * @throws Error naming both routes if two match exactly the same requests
 */
export function createRouter<R extends Routable>(
  routes: readonly R[],
  convention: PathConvention = "google",
): Router<R> {
  const root = createNode<R>();
  const plain = new Map<string, Map<string, RouteMatch<R>>>();
  for (const route of routes) {
    insert(root, route);
    const path = plainPathOf(route.template);
    if (path === undefined) continue;
    plain.getOrInsert(route.httpMethod, new Map()).set(path, { route, variables: new Map() });
  }
  return {
    match: (httpMethod, rawPath) =>
      plain.get(httpMethod)?.get(rawPath) ??
      match(root, { httpMethod, convention, methods: new Set() }, splitPath(rawPath)),
  };
}

/**
 * Returns the only path that a template without variables matches literally; undefined for any other
 * template. No other template takes precedence. Encoded paths, and paths with a colon that might begin a
 * verb, are left to the trie.
 */
function plainPathOf({ segments, variables, verb }: Template): string | undefined {
  if (verb !== "" || variables.length > 0) return undefined;
  const texts = segments.map((segment) => (segment.kind === "literal" ? segment.text : "*"));
  return texts.some((text) => /[*%:/?#]/.test(text)) ? undefined : `/${texts.join("/")}`;
}

/** One search for a route. */
interface Search {
  readonly httpMethod: string;
  readonly convention: PathConvention;
  /** The methods of all templates that have matched the path so far. */
  readonly methods: Set<string>;
}

/** Returns whether a less specific template may still be tried. */
function mayGoOn({ convention, methods }: Search): boolean {
  return convention === "google" || methods.size === 0;
}

function createNode<R>(): Node<R> {
  return { literals: new Map(), one: undefined, rest: undefined, routes: new Map() };
}

function insert<R extends Routable>(root: Node<R>, route: R): void {
  let node = root;
  for (const segment of route.template.segments) {
    if (segment.kind === "literal") {
      node = node.literals.getOrInsertComputed(segment.text, createNode<R>);
    } else {
      node = node[segment.kind] ??= createNode<R>();
    }
  }
  const byMethod = node.routes.getOrInsert(route.template.verb, new Map());
  const other = byMethod.get(route.httpMethod);
  if (other !== undefined) {
    throw new Error(
      `${route.origin} and ${other.origin} match the same requests: ` +
        `${route.httpMethod} ${route.template.text} and ${other.httpMethod} ${other.template.text}`,
    );
  }
  byMethod.set(route.httpMethod, route);
}

/** The raw segments of a path, and the decoded ones to compare with literals. */
interface Path {
  readonly raw: readonly string[];
  readonly decoded: readonly string[];
}

function splitPath(rawPath: string): Path {
  const raw = rawPath === "/" ? [] : rawPath.slice(1).split("/");
  return { raw, decoded: raw.map(decodeSegment) };
}

/** Decodes every percent-encoded byte of one segment (RFC 3986, section 2.1). */
function decodeSegment(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    throw refuse("TARGET_INVALID", `the path segment "${segment}" is not valid percent-encoded UTF-8`);
  }
}

function match<R extends Routable>(root: Node<R>, search: Search, path: Path): RouteResult<R> {
  const attempt = (candidate: Path, verb: string): RouteMatch<R> | undefined => {
    const found = walk(root, candidate, 0, verb, search);
    return found && { route: found, variables: captureVariables(found.template, candidate.raw, search) };
  };
  const split = splitVerb(path);
  const withVerb = split && attempt(split.path, split.verb);
  if (withVerb !== undefined) return withVerb;
  const matched = mayGoOn(search) ? attempt(path, "") : undefined;
  return matched ?? { route: undefined, methods: [...search.methods] };
}

/** Splits the last segment at its last colon. An encoded colon never begins a verb. */
function splitVerb(path: Path): { path: Path; verb: string } | undefined {
  const last = path.raw.at(-1);
  const colon = last?.lastIndexOf(":") ?? -1;
  // A colon at the end is part of the segment.
  if (last === undefined || colon < 0 || colon === last.length - 1) return undefined;
  const head = last.slice(0, colon);
  return {
    path: {
      raw: [...path.raw.slice(0, -1), head],
      decoded: [...path.decoded.slice(0, -1), decodeSegment(head)],
    },
    verb: decodeSegment(last.slice(colon + 1)),
  };
}

function walk<R extends Routable>(
  node: Node<R>,
  path: Path,
  depth: number,
  verb: string,
  search: Search,
): R | undefined {
  const segment = path.decoded[depth];
  if (segment === undefined) return finish(node, verb, search) ?? finishRest(node, verb, search);
  const literal = node.literals.get(segment);
  const deeper = literal && walk(literal, path, depth + 1, verb, search);
  if (deeper !== undefined) return deeper;
  if (node.one !== undefined && segment !== "" && mayGoOn(search)) {
    const found = walk(node.one, path, depth + 1, verb, search);
    if (found !== undefined) return found;
  }
  return finishRest(node, verb, search);
}

/** Tries the `**` of a node. */
function finishRest<R>({ rest }: Node<R>, verb: string, search: Search): R | undefined {
  return rest !== undefined && mayGoOn(search) ? finish(rest, verb, search) : undefined;
}

function finish<R>(node: Node<R>, verb: string, { httpMethod, methods }: Search): R | undefined {
  const byMethod = node.routes.get(verb);
  if (byMethod === undefined) return undefined;
  for (const method of byMethod.keys()) methods.add(method);
  // RFC 9110, section 9.3.2: HEAD is GET without its content.
  const fallback = httpMethod === "HEAD" ? byMethod.get("GET") : undefined;
  return byMethod.get(httpMethod) ?? fallback ?? byMethod.get("*");
}

function captureVariables(
  template: Template,
  raw: readonly string[],
  { convention }: Search,
): ReadonlyMap<Variable, string> {
  const values = new Map<Variable, string>();
  for (const variable of template.variables) {
    const endsInRest = template.segments[variable.end - 1]?.kind === "rest";
    const captured = raw.slice(variable.start, endsInRest ? raw.length : variable.end);
    const decode = variable.multiSegment && convention === "google" ? decodeAllButSlashes : decodeSegment;
    values.set(variable, captured.map(decode).join("/"));
  }
  return values;
}

/** Decodes a segment, except %2F and %2f. */
function decodeAllButSlashes(segment: string): string {
  return segment
    .split(/(%2f)/i)
    .map((part) => (/^%2f$/i.test(part) ? part : decodeSegment(part)))
    .join("");
}

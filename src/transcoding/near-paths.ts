/** Finds the path that a caller may have meant, if no route has the path of a request. */
import { measureDistance } from "../protocol/suggest.ts";
import type { Routable } from "./router.ts";

/** Longer paths get no suggestion, so that a search stays short. */
const maxPathCharacters = 128;

/** The most changed letters of a whole path, and of a segment: two make one operation of another, as import of export. */
const maxChanges = 3;
const maxSegmentChanges = 1;

/** A template, and the HTTP methods of its routes. */
interface Candidate {
  readonly text: string;
  readonly methods: Set<string>;
}

/** Templates that begin alike. */
interface Node {
  /** By the text of a segment, with the verb behind it if the template ends there; in lower case. */
  readonly literals: Map<string, Node>;
  /** Continues behind a variable. */
  variable: Node | undefined;
  /** Templates that end with a variable and a verb. */
  readonly verbs: Map<string, Node>;
  candidate: Candidate | undefined;
}

/**
 * Finds the template that is nearest to a path, as its proto spells it, with its variables: "/shelves/{shelf}/books".
 *
 * @returns undefined if none is near, or for a path of more than 128 characters
 */
export type FindNearPath = (httpMethod: string, path: string) => string | undefined;

/** Creates the search over the templates of routes. Variables match any text. */
export function createNearPaths(routes: readonly Routable[]): FindNearPath {
  const root = createNode();
  for (const route of routes) insert(root, route);
  return (httpMethod, path) => {
    if (path.length > maxPathCharacters) return undefined;
    const words = path.slice(1).toLowerCase().split("/");
    const slashes = words.at(-1) === "" && words.length > 1 ? 1 : 0;
    if (slashes > 0) words.pop();
    const search: Search = { words, httpMethod, least: maxChanges, nearest: undefined };
    walk(root, 0, slashes, search);
    return search.nearest?.text ?? findWithoutFirst(root, search);
  };
}

/** Finds the template that a path matches if its first segment, such as "api", is put before it. */
function findWithoutFirst({ literals }: Node, { words, httpMethod }: Search): string | undefined {
  const search: Search = { words, httpMethod, least: 0, nearest: undefined };
  for (const node of literals.values()) walk(node, 0, 0, search);
  return search.nearest?.text;
}

function createNode(): Node {
  return { literals: new Map(), variable: undefined, verbs: new Map(), candidate: undefined };
}

function insert(root: Node, { httpMethod, template: { segments, verb, text } }: Routable): void {
  let node = root;
  segments.forEach((segment, i) => {
    const suffix = i === segments.length - 1 && verb !== "" ? `:${verb}` : "";
    if (segment.kind === "literal") {
      node = getOrCreate(node.literals, `${segment.text}${suffix}`.toLowerCase());
    } else if (suffix !== "") {
      node = getOrCreate(node.verbs, verb.toLowerCase());
    } else {
      node = node.variable ??= createNode();
    }
  });
  node.candidate ??= { text, methods: new Set() };
  node.candidate.methods.add(httpMethod);
}

function getOrCreate(nodes: Map<string, Node>, text: string): Node {
  const node = nodes.get(text) ?? createNode();
  nodes.set(text, node);
  return node;
}

/** One search. */
interface Search {
  /** The segments of the path in lower case. */
  readonly words: readonly string[];
  readonly httpMethod: string;
  /** Changes that a candidate may have: at first the limit, then those of the nearest. */
  least: number;
  nearest: Candidate | undefined;
}

/** Compares the words from `depth` on with the templates below a node. Each text of a segment is compared once. */
function walk(node: Node, depth: number, changes: number, search: Search): void {
  const word = search.words[depth];
  if (word === undefined) return consider(node, changes, search);
  if (node.variable !== undefined && word !== "") walk(node.variable, depth + 1, changes, search);
  for (const [text, next] of node.literals)
    follow(next, depth, changes, compare(word, text, search.least - changes), search);
  if (node.verbs.size === 0) return;
  const verb = word.slice(word.lastIndexOf(":") + 1);
  for (const [text, next] of node.verbs)
    follow(next, depth, changes, compare(verb, text, search.least - changes), search);
}

function follow(node: Node, depth: number, before: number, more: number, search: Search): void {
  if (before + more <= search.least) walk(node, depth + 1, before + more, search);
}

function consider({ candidate }: Node, changes: number, search: Search): void {
  if (candidate === undefined || changes > search.least) return;
  const { nearest, least, httpMethod } = search;
  // Of two that are equally near, the one that has the method.
  const isNearer = nearest === undefined || changes < least;
  if (!isNearer && (nearest.methods.has(httpMethod) || !candidate.methods.has(httpMethod))) return;
  search.nearest = candidate;
  search.least = changes;
}

function compare(word: string, text: string, atMost: number): number {
  return word === text ? 0 : measureDistance(word, text, Math.min(atMost, maxSegmentChanges));
}

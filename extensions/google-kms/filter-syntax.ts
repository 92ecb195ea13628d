/**
 * Parses list filters (cloud.google.com/kms/docs/sorting-and-filtering, google.aip.dev/160), such as
 * `state=ENABLED AND (labels.team=alpha OR NOT name:"test")`. OR binds tighter than AND, and a space means
 * AND.
 */
import { refuseField } from "../../src/errors.ts";

/** Comparison operators. ":" means containment. */
export type Operator = "=" | "!=" | "<" | "<=" | ">" | ">=" | ":";

/** One comparison. */
export interface Comparison {
  readonly kind: "comparison";
  /** As written in the filter: "labels.team". */
  readonly field: string;
  readonly operator: Operator;
  readonly value: string;
}

/** A filter. */
export type Filter =
  | Comparison
  | { readonly kind: "and" | "or"; readonly of: readonly Filter[] }
  | { readonly kind: "not"; readonly of: Filter };

const maxCharacters = 2000;
const maxTokens = 100;
const maxDepth = 10;

interface Token {
  /** A string is quoted, a word is not. */
  readonly kind: "word" | "string" | "operator" | "(" | ")" | "-";
  readonly text: string;
}

/**
 * One token with its leading space. Two-character operators are listed before their one-character prefixes.
 */
const pattern =
  /\s*(?:(?<string>"(?:[^"\\]|\\.)*")|(?<operator>!=|<=|>=|=>|[=<>:])|(?<mark>[()]|-(?=[\w(]))|(?<word>[^\s()"=<>!:]+))/uy;

/**
 * Parses a non-empty filter.
 *
 * @throws FIELD_INVALID
 */
export function parseFilter(text: string): Filter {
  if (text.length > maxCharacters)
    throw invalid(`has ${text.length} characters; the limit is ${maxCharacters}`);
  const tokens = readTokens(text);
  const { filter, next } = parseSequence(tokens, 0, 1);
  if (next < tokens.length) throw invalid(`"${tokens[next]?.text}" is unexpected`);
  return filter;
}

function readTokens(text: string): Token[] {
  const end = text.trimEnd().length;
  const tokens: Token[] = [];
  let at = 0;
  while (at < end) {
    pattern.lastIndex = at;
    const { string, operator, mark, word } = pattern.exec(text)?.groups ?? {};
    if (string !== undefined)
      tokens.push({ kind: "string", text: string.slice(1, -1).replaceAll(/\\(.)/gu, "$1") });
    else if (operator !== undefined) tokens.push({ kind: "operator", text: operator });
    else if (mark === "(" || mark === ")" || mark === "-") tokens.push({ kind: mark, text: mark });
    else if (word !== undefined) tokens.push({ kind: "word", text: word });
    else throw invalid(`has an unexpected character at position ${at + 1}`);
    if (tokens.length > maxTokens) throw invalid(`has more than ${maxTokens} words`);
    at = pattern.lastIndex;
  }
  return tokens;
}

interface Parsed {
  readonly filter: Filter;
  /** The index of the next token. */
  readonly next: number;
}

/** Terms separated by AND or spaces. */
function parseSequence(tokens: readonly Token[], start: number, depth: number): Parsed {
  if (depth > maxDepth) throw invalid(`is nested more than ${maxDepth} levels deep`);
  const of: Filter[] = [];
  let next = start;
  do {
    if (of.length > 0 && isWord(tokens[next], "AND")) next += 1;
    const alternatives: Filter[] = [];
    do {
      if (alternatives.length > 0) next += 1;
      const term = parseTerm(tokens, next, depth);
      alternatives.push(term.filter);
      next = term.next;
    } while (isWord(tokens[next], "OR"));
    of.push(join("or", alternatives));
  } while (next < tokens.length && tokens[next]?.kind !== ")");
  return { filter: join("and", of), next };
}

function parseTerm(tokens: readonly Token[], start: number, depth: number): Parsed {
  const token = tokens[start];
  if (token?.kind === "-" || isWord(token, "NOT")) {
    const { filter, next } = parseSimple(tokens, start + 1, depth);
    return { filter: { kind: "not", of: filter }, next };
  }
  return parseSimple(tokens, start, depth);
}

function parseSimple(tokens: readonly Token[], start: number, depth: number): Parsed {
  const [first, operator, value] = tokens.slice(start, start + 3);
  if (first?.kind === "(") {
    const { filter, next } = parseSequence(tokens, start + 1, depth + 1);
    if (tokens[next]?.kind !== ")") throw invalid('lacks a ")"');
    return { filter, next: next + 1 };
  }
  if (first?.kind !== "word") throw invalid(`lacks a field${first ? ` before "${first.text}"` : ""}`);
  if (operator?.kind !== "operator") throw invalid(`lacks an operator after "${first.text}", such as =`);
  const signed = value?.kind === "-" ? tokens[start + 3] : undefined;
  if (value?.kind !== "word" && value?.kind !== "string" && signed === undefined)
    throw invalid(`lacks a value after "${first.text}"`);
  const comparison: Comparison = {
    kind: "comparison",
    field: first.text,
    // Google's page writes => for "greater or equal".
    operator: (operator.text === "=>" ? ">=" : operator.text) as Operator,
    value: signed === undefined ? (value?.text ?? "") : `-${signed.text}`,
  };
  return { filter: comparison, next: start + (signed === undefined ? 3 : 4) };
}

function join(kind: "and" | "or", of: readonly Filter[]): Filter {
  const [only] = of;
  return only !== undefined && of.length === 1 ? only : { kind, of };
}

function isWord(token: Token | undefined, text: string): boolean {
  return token?.kind === "word" && token.text === text;
}

/** The error for an invalid filter. */
export function invalid(description: string): Error {
  return refuseField("filter", description);
}

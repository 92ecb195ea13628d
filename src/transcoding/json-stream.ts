/** Splits a body into the JSON texts of its messages, which are checked and built later. */
import { bodyTooLarge } from "../errors.ts";
import { createExpansionBudget } from "../message-limits/expansion.ts";
import {
  closeBrace,
  closeBracket,
  comma,
  endOfString,
  openBrace,
  openBracket,
  quote,
  scanJson,
} from "../message-limits/json-structure.ts";
import type { StructureLimits } from "../message-limits/structure-limits.ts";
import { type IncomingBody, readChunks } from "./body.ts";
import { decodeJsonText, parseJsonText } from "./json.ts";

/**
 * Yields the lines of a body as they arrive. Skips blank lines.
 *
 * @throws BODY_TOO_LARGE for a line of more than maxBytes, and for a compressed body that expands too much
 */
export async function* readLines(body: IncomingBody, maxBytes: number): AsyncGenerator<Uint8Array> {
  const budget = createExpansionBudget(maxBytes);
  // The pieces of an unfinished line are joined once, so that many small pieces stay cheap.
  let pieces: Uint8Array[] = [];
  let size = 0;
  let cost = 0;
  const add = (piece: Uint8Array): void => {
    size += piece.length;
    if (size > maxBytes) throw bodyTooLarge(maxBytes);
    cost += body.meter?.charge(piece.length) ?? 0;
    pieces.push(piece);
  };
  const take = (): Uint8Array => {
    const line = pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces, size);
    body.meter?.refund(cost);
    pieces = [];
    size = 0;
    cost = 0;
    return line;
  };
  for await (const chunk of readChunks(body, budget)) {
    let start = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
      add(chunk.subarray(start, end));
      const line = take();
      // A blank line costs as much as a short message.
      budget.addMessage();
      if (!isBlank(line)) yield line;
      start = end + 1;
    }
    if (start < chunk.length) add(chunk.subarray(start));
  }
  const line = take();
  if (!isBlank(line)) yield line;
}

const whiteSpace = new Set(Buffer.from(" \t\r\n"));

function isBlank(line: Uint8Array): boolean {
  return line.every((byte) => whiteSpace.has(byte));
}

/**
 * Splits a JSON array into its elements. A single value counts as an array of one, an empty text as an empty
 * array.
 *
 * @throws MESSAGE_TOO_COMPLEX, JSON_INVALID
 */
export function splitJsonArray(bytes: Uint8Array, limits: StructureLimits): Uint8Array[] {
  scanJson(bytes, limits);
  const text = decodeJsonText(bytes).trim();
  if (text === "") return [];
  if (!Array.isArray(parseJsonText(text))) return [bytes];
  return splitElements(Buffer.from(text));
}

/** Splits a valid JSON array without surrounding white space: brackets match, and strings end. */
function splitElements(bytes: Uint8Array): Uint8Array[] {
  const elements: Uint8Array[] = [];
  let start = 1;
  let depth = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    switch (bytes[at]) {
      case quote:
        at = endOfString(bytes, at + 1);
        break;
      case openBracket:
      case openBrace:
        depth += 1;
        break;
      case closeBracket:
      case closeBrace:
        depth -= 1;
        if (depth > 0) break;
        addElement(elements, bytes.subarray(start, at));
        break;
      case comma:
        if (depth > 1) break;
        addElement(elements, bytes.subarray(start, at));
        start = at + 1;
    }
  }
  return elements;
}

function addElement(elements: Uint8Array[], element: Uint8Array): void {
  if (!isBlank(element)) elements.push(element);
}

/** Splits a body into the JSON texts of its messages, without parsing them: that is strict, and comes later. */
import { refuseBody } from "../errors.ts";
import { type IncomingBody, readChunks } from "./body.ts";
import { decodeJsonText, parseJsonValue } from "./json.ts";

/**
 * Yields the lines of a body as they arrive; blank lines are skipped.
 *
 * @throws BODY_TOO_LARGE for a line of more than maxBytes, JSON_INVALID for bytes that are not UTF-8
 */
export async function* readLines(body: IncomingBody, maxBytes: number): AsyncGenerator<string> {
  // Pieces of the line that has not ended yet: put together once, so that many small pieces stay cheap.
  let pieces: Uint8Array[] = [];
  let size = 0;
  let cost = 0;
  const add = (piece: Uint8Array): void => {
    size += piece.length;
    if (size > maxBytes) throw refuseBody(maxBytes);
    cost += body.meter?.charge(piece.length) ?? 0;
    pieces.push(piece);
  };
  const take = (): Uint8Array => {
    const line = Buffer.concat(pieces, size);
    body.meter?.refund(cost);
    pieces = [];
    size = 0;
    cost = 0;
    return line;
  };
  for await (const chunk of readChunks(body)) {
    let start = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
      add(chunk.subarray(start, end));
      yield* nonBlank(take());
      start = end + 1;
    }
    if (start < chunk.length) add(chunk.subarray(start));
  }
  yield* nonBlank(take());
}

function* nonBlank(line: Uint8Array): Generator<string> {
  const text = decodeJsonText(line).trim();
  if (text !== "") yield text;
}

/**
 * Takes the elements of one JSON array apart; a single value counts as an array of one, nothing as none.
 *
 * @throws JSON_INVALID
 */
export function splitJsonArray(bytes: Uint8Array): string[] {
  const text = decodeJsonText(bytes).trim();
  if (text === "") return [];
  if (!Array.isArray(parseJsonValue(text))) return [text];
  const elements: string[] = [];
  let start = 1;
  let depth = 0;
  let inString = false;
  // The text is known to be a JSON array, so brackets match and strings end.
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (inString) {
      if (character === "\\") index += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') {
      inString = true;
    } else if (character === "[" || character === "{") {
      depth += 1;
    } else if (character === "]" || character === "}") {
      depth -= 1;
    }
    const endsElement = (character === "," && depth === 1) || depth === 0;
    if (endsElement && !inString) {
      const element = text.slice(start, index).trim();
      if (element !== "") elements.push(element);
      start = index + 1;
    }
  }
  return elements;
}

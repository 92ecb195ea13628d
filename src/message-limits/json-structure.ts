/** Counts the parts of JSON text without parsing it. */
import { messageTooComplex } from "../errors.ts";
import { maxJsonDepth, type StructureLimits } from "./structure-limits.ts";

/** The structure of a JSON text. */
export interface JsonStructure {
  /** Members of all objects, including duplicates. */
  readonly members: number;
  /** Whether a number may be an integer that a double rounds: it has 16 digits in a row, or an exponent. */
  readonly hasLongNumber: boolean;
}

export const quote = 0x22;
export const comma = 0x2c;
const zero = 0x30;
const nine = 0x39;
const colon = 0x3a;
export const openBracket = 0x5b;
const backslash = 0x5c;
export const closeBracket = 0x5d;
const letterE = 0x65;
export const openBrace = 0x7b;
export const closeBrace = 0x7d;

/** 1 for each byte that does not affect the structure: the fastest way to skip white space and words. */
const isPlain = new Uint8Array(256).fill(1);
for (const byte of Buffer.from('0123456789",:[]{}')) isPlain[byte] = 0;

/** A double holds every integer of 15 digits. */
const longDigits = 16;
/** More digits than any legitimate number has. JSON.parse takes long to read millions. */
const maxDigits = 1000;

/**
 * Scans JSON text once, byte by byte, without allocating. The syntax is left to JSON.parse.
 *
 * @param bytes UTF-8
 * @throws MESSAGE_TOO_COMPLEX as soon as a limit is exceeded
 */
export function scanJson(
  bytes: Uint8Array,
  { maxElements }: Pick<StructureLimits, "maxElements">,
): JsonStructure {
  const end = bytes.length;
  let depth = 0;
  // Each bracket opens a value that can have a first element, and each comma adds one.
  let elements = 1;
  let members = 0;
  let digits = 0;
  let hasLongNumber = false;
  for (let at = 0; at < end; at += 1) {
    const byte = bytes[at] as number;
    if (isPlain[byte] === 1) {
      if (digits > 0) {
        // This bit makes a letter lower case.
        if ((byte | 0x20) === letterE) hasLongNumber = true;
        digits = 0;
      }
      continue;
    }
    if (byte >= zero && byte <= nine) {
      digits += 1;
      if (digits === longDigits) hasLongNumber = true;
      if (digits > maxDigits) throw messageTooComplex("digits in a number", maxDigits);
      continue;
    }
    switch (byte) {
      case quote:
        at = endOfString(bytes, at + 1);
        break;
      case comma:
        elements += 1;
        if (elements > maxElements) throw messageTooComplex("values", maxElements);
        break;
      case colon:
        members += 1;
        break;
      case openBracket:
      case openBrace:
        depth += 1;
        elements += 1;
        if (depth > maxJsonDepth) throw messageTooComplex("levels of nesting", maxJsonDepth);
        if (elements > maxElements) throw messageTooComplex("values", maxElements);
        break;
      case closeBracket:
      case closeBrace:
        depth -= 1;
        break;
    }
    digits = 0;
  }
  return { members, hasLongNumber };
}

/** Returns the position of the quote that ends a string, or the end of the text. */
export function endOfString(bytes: Uint8Array, start: number): number {
  const end = bytes.length;
  let at = start;
  while (at < end) {
    const byte = bytes[at];
    if (byte === quote) break;
    at += byte === backslash ? 2 : 1;
  }
  return at;
}

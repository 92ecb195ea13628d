/**
 * Describes bytes in their JSON form, base64 (RFC 4648).
 *
 * A request may use the standard or the URL-safe alphabet, with or without padding
 * (src/transcoding/strict-values.ts). A response uses the standard alphabet with padding.
 */
import type { Schema } from "./document.ts";

/** The number of bytes that a field may have. */
export interface ByteLimits {
  readonly minBytes: number;
  readonly maxBytes: number | undefined;
  /** Whether an empty value is accepted even though it is shorter than minBytes. */
  readonly mayBeEmpty: boolean;
}

/** OpenAPI 3.1 has contentEncoding (section 4.8.24.3). Generators made for version 3.0 read the format. */
export const base64Schema: Schema = { type: "string", format: "byte", contentEncoding: "base64" };

const character = "[A-Za-z0-9+/_-]";

const group = `(?:${character}{4})`;
/** What may follow whole groups of four characters: one byte, two bytes or nothing. */
const oneByte = `${character}{2}(?:==)?`;
const twoBytes = `${character}{3}=?`;
const remainder = `(?:${oneByte}|${twoBytes})?`;

/** Maximum number of groups that a pattern counts: RE2 accepts at most 1000 repetitions. */
const maxCountedGroups = 100;

/**
 * Returns the schema of bytes in a request.
 *
 * It accepts exactly what the server accepts, with one exception: the longest text may hold two bytes more
 * than maxBytes, because text without padding holds more than padded text of the same length. Keywords for
 * that exist, but test generators fail on them, so callers of this function add a sentence.
 */
export function describeBytes({ minBytes, maxBytes, mayBeEmpty }: ByteLimits): Schema {
  const longest = maxBytes === undefined ? {} : { maxLength: paddedLength(maxBytes) };
  const shortest = unpaddedLength(minBytes);
  const isCounted = minBytes / 3 <= maxCountedGroups;
  if (minBytes === maxBytes && isCounted) {
    const pattern = `${character}{${shortest}}${["", "(?:==)?", "=?"][minBytes % 3]}`;
    return mayBeEmpty
      ? { ...base64Schema, pattern: `^(?:${pattern})?$`, ...longest }
      : { ...base64Schema, pattern: `^${pattern}$`, minLength: shortest, ...longest };
  }
  const atLeast = isCounted ? atLeastPattern(minBytes) : `${group}*${remainder}`;
  const mayBeShort = mayBeEmpty || minBytes === 0;
  const refused = isCounted ? [] : excludeTooShort(minBytes);
  return {
    ...base64Schema,
    pattern: mayBeEmpty && minBytes > 0 ? `^(?:${atLeast})?$` : `^${atLeast}$`,
    ...(mayBeShort ? {} : { minLength: shortest }),
    ...longest,
    ...(refused.length > 0 && { not: refused.length === 1 ? refused[0] : { anyOf: refused } }),
  };
}

/** Matches the base64 of at least `bytes` bytes. */
function atLeastPattern(bytes: number): string {
  const groups = Math.floor(bytes / 3);
  const whole = groups === 0 ? "" : `${group}{${groups}}`;
  if (bytes % 3 === 0) return `${whole}${group}*${remainder}`;
  const rest = bytes % 3 === 1 ? `${oneByte}|${twoBytes}` : twoBytes;
  return `${whole}(?:${rest}|${group}+${remainder})`;
}

/** Shorter texts hold too few bytes, and so do the shortest texts with too much padding. */
function excludeTooShort(bytes: number): Schema[] {
  const tooMuch = ["=$", undefined, "==$"][bytes % 3];
  const shortest = unpaddedLength(bytes);
  return [
    { type: "string", minLength: 1, maxLength: shortest - 1 },
    ...(tooMuch === undefined
      ? []
      : [{ type: "string", minLength: shortest, maxLength: paddedLength(bytes), pattern: tooMuch }]),
  ];
}

function unpaddedLength(bytes: number): number {
  return Math.ceil((bytes * 4) / 3);
}

function paddedLength(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}

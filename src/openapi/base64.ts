/**
 * Describes bytes in their JSON form, base64 (RFC 4648).
 *
 * A request may use the standard alphabet or the URL-safe one, with padding or without (src/transcoding/strict-values.ts).
 * A response has the standard alphabet with padding.
 */
import type { Schema } from "./document.ts";

/** How many bytes a field may have. */
export interface ByteLimits {
  readonly minBytes: number;
  readonly maxBytes: number | undefined;
  /** Whether no bytes at all are accepted although they are fewer than minBytes. */
  readonly mayBeEmpty: boolean;
}

/** OpenAPI 3.1 has contentEncoding (section 4.8.24.3). Generators made for version 3.0 read the format. */
export const base64Schema: Schema = { type: "string", format: "byte", contentEncoding: "base64" };

const character = "[A-Za-z0-9+/_-]";

/** Longer texts have no pattern of their own: RE2 takes at most 1000 repetitions, and generators of tests far fewer. */
const maxPatternLength = 400;

/** The schema of bytes in a request. */
export function describeBytes({ minBytes, maxBytes, mayBeEmpty }: ByteLimits): Schema {
  const shortest = unpaddedLength(minBytes);
  const longest = maxBytes === undefined ? {} : { maxLength: paddedLength(maxBytes) };
  if (minBytes === maxBytes && shortest <= maxPatternLength) {
    const pattern = `${character}{${shortest}}${["", "(?:==)?", "=?"][minBytes % 3]}`;
    return mayBeEmpty
      ? { ...base64Schema, pattern: `^(?:${pattern})?$`, ...longest }
      : { ...base64Schema, pattern: `^${pattern}$`, minLength: shortest, ...longest };
  }
  const edges = [
    ...(maxBytes === undefined ? [] : describeUpperEdge(maxBytes)),
    ...(minBytes > 0 && !mayBeEmpty ? describeLowerEdge(minBytes) : []),
    ...(minBytes > 0 && mayBeEmpty ? [describeMinimum(minBytes)] : []),
  ];
  return {
    ...base64Schema,
    pattern: `^(?:${character}{4})*(?:${character}{2}(?:==)?|${character}{3}=?)?$`,
    ...(minBytes > 0 && !mayBeEmpty ? { minLength: shortest } : {}),
    ...longest,
    ...edges.reduceRight<Schema>((others, edge) => ({ ...edge, ...(others.if && { else: others }) }), {}),
  };
}

/** A text that may be empty has a minimum only if it is not. */
function describeMinimum(bytes: number): Schema {
  const [edge] = describeLowerEdge(bytes);
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  return { if: { minLength: 1 }, then: { minLength: unpaddedLength(bytes), ...edge } };
}

/** The shortest texts may have more padding than they need for the fewest bytes. */
function describeLowerEdge(bytes: number): Schema[] {
  const tooMuch = ["=$", undefined, "==$"][bytes % 3];
  if (tooMuch === undefined) return [];
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  return [{ if: { maxLength: paddedLength(bytes) }, then: { not: { pattern: tooMuch } } }];
}

/** The longest texts hold too many bytes unless they end with padding. */
function describeUpperEdge(bytes: number): Schema[] {
  const padding = [undefined, "==$", "=$"][bytes % 3];
  if (padding === undefined) return [];
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  return [{ if: { minLength: unpaddedLength(bytes) + 1 }, then: { pattern: padding } }];
}

function unpaddedLength(bytes: number): number {
  return Math.ceil((bytes * 4) / 3);
}

function paddedLength(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}

/**
 * Distinguished names as text (RFC 4514), such as CN=release,O=Example. Strict: only the nine types of RFC
 * 4514, section 3, one attribute per part, and printable values.
 */
import { CryptoError } from "./crypto-error.ts";

interface AttributeRule {
  readonly oid: string;
  /** Maximum characters, from RFC 5280, appendix A.1, where it sets an upper bound. */
  readonly maxCharacters: number;
  /** The ASN.1 type that RFC 5280, section 4.1.2.4, or RFC 4519 requires. */
  readonly encoding: "utf8" | "printable" | "ia5";
  /** Whether the type may occur more than once. */
  readonly isMany?: boolean;
  readonly pattern?: { readonly test: RegExp; readonly meaning: string };
}

const letterPair = { test: /^[A-Z]{2}$/, meaning: "two capital letters, such as DE" };
const domainLabel = {
  test: /^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$/,
  meaning: "one part of a host name, such as example",
};

/** Attribute types of RFC 4514, section 3. */
export const attributeRules = {
  CN: { oid: "2.5.4.3", maxCharacters: 64, encoding: "utf8" },
  L: { oid: "2.5.4.7", maxCharacters: 128, encoding: "utf8" },
  ST: { oid: "2.5.4.8", maxCharacters: 128, encoding: "utf8" },
  O: { oid: "2.5.4.10", maxCharacters: 64, encoding: "utf8" },
  OU: { oid: "2.5.4.11", maxCharacters: 64, encoding: "utf8", isMany: true },
  C: { oid: "2.5.4.6", maxCharacters: 2, encoding: "printable", pattern: letterPair },
  STREET: { oid: "2.5.4.9", maxCharacters: 128, encoding: "utf8" },
  DC: {
    oid: "0.9.2342.19200300.100.1.25",
    maxCharacters: 63,
    encoding: "ia5",
    isMany: true,
    pattern: domainLabel,
  },
  UID: { oid: "0.9.2342.19200300.100.1.1", maxCharacters: 256, encoding: "utf8" },
} as const satisfies Record<string, AttributeRule>;

export type AttributeType = keyof typeof attributeRules;

export interface NameAttribute {
  readonly type: AttributeType;
  readonly value: string;
}

/** A name in certificate order, the most general part first, which reverses its text form. Empty for none. */
export type DistinguishedName = readonly NameAttribute[];

/** Maximum number of parts. */
const maxAttributes = 16;

const typeNames = Object.keys(attributeRules) as AttributeType[];

/** Characters that must be escaped with a backslash (RFC 4514, section 2.4). */
const special = /["+,;<>\\]/;

/**
 * Parses the text form of a name.
 *
 * @returns an empty name for an empty text
 * @throws INVALID_ARGUMENT that states the invalid part and its problem
 */
export function parseDistinguishedName(text: string): DistinguishedName {
  if (text === "") return [];
  const name = splitParts(text).map(parsePart).reverse();
  checkDistinguishedName(name);
  return name;
}

/** Formats a name so that `parseDistinguishedName` returns the same name. */
export function formatDistinguishedName(name: DistinguishedName): string {
  return name
    .toReversed()
    .map(({ type, value }) => `${type}=${value.replace(/^[ #]|["+,;<>\\]| $/g, "\\$&")}`)
    .join(",");
}

/**
 * Checks a name that was not parsed from text.
 *
 * @throws INVALID_ARGUMENT
 */
export function checkDistinguishedName(name: DistinguishedName): void {
  if (name.length > maxAttributes) throw invalid(`has ${name.length} parts; the limit is ${maxAttributes}`);
  for (const { type, value } of name) checkValue(type, value);
  const types = name.map(({ type }) => type);
  // With two common names, a person might read one and a program the other.
  const twice = types.find((type, i) => types.indexOf(type) !== i && !isMany(type));
  if (twice !== undefined) throw invalid(`has ${twice} twice; only OU and DC may occur more than once`);
}

function isMany(type: AttributeType): boolean {
  const rule: AttributeRule = attributeRules[type];
  return rule.isMany === true;
}

function checkValue(type: AttributeType, value: string): void {
  const { maxCharacters, pattern }: AttributeRule = attributeRules[type];
  const characters = [...value].length;
  if (characters < 1 || characters > maxCharacters) {
    const form = pattern === undefined ? "" : `: ${pattern.meaning}`;
    const lengths = type === "C" ? "2" : `1 to ${maxCharacters}`;
    throw invalid(`${type} has ${characters} characters; give ${lengths}${form}`);
  }
  if (pattern !== undefined && !pattern.test.test(value)) throw invalid(`${type} must be ${pattern.meaning}`);
  // Such characters can make one name look like a different name.
  if (!isPrintable(value))
    throw invalid(
      `${type} contains a control, format, line or invisible character; use printable characters`,
    );
  if (value.trim() !== value) throw invalid(`${type} must not begin or end with a space`);
}

/**
 * Returns whether every character is visible; the only space allowed is U+0020. Excludes unpaired surrogates,
 * direction controls, and invisible letters and marks such as U+3164, U+FE0F and U+2800.
 */
function isPrintable(text: string): boolean {
  return !/[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u.test(text.replaceAll(" ", ""));
}

/** Splits at unescaped commas. */
function splitParts(text: string): string[] {
  if (/(?<!\\)(?:\\\\)*\\$/.test(text)) throw invalid("ends with a backslash; write \\\\ for a backslash");
  const parts = `${text},`.match(/(?:[^,\\]|\\.)*,/gsu) ?? [];
  return parts.map((part) => part.slice(0, -1));
}

function parsePart(part: string): NameAttribute {
  const at = part.indexOf("=");
  const written = at < 0 ? part : part.slice(0, at);
  const type = typeNames.find((name) => name === written.toUpperCase());
  if (at < 0) throw invalid(`the part ${JSON.stringify(part)} is not TYPE=value, such as CN=release`);
  if (written !== written.trim())
    throw invalid(`has a space before or after ${written.trim()}; write CN=release,O=Example`);
  if (type === undefined)
    throw invalid(`has the type ${JSON.stringify(written)}; the types are ${typeNames.join(", ")}`);
  return { type, value: unescapeValue(type, part.slice(at + 1)) };
}

/** RFC 4514, section 3: `string`. */
function unescapeValue(type: AttributeType, text: string): string {
  if (text.startsWith("#"))
    throw invalid(`${type} is in hexadecimal; write it as text, with \\# for a leading #`);
  const bytes: number[] = [];
  for (const [token] of text.matchAll(/\\[0-9A-Fa-f]{2}|\\?./gsu)) bytes.push(...readToken(type, token));
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
  } catch {
    throw invalid(`${type} is not UTF-8`);
  }
}

/** Parses one character, escaped character or escaped byte. */
function readToken(type: AttributeType, token: string): Iterable<number> {
  if (/^\\[0-9A-Fa-f]{2}$/.test(token)) return [Number.parseInt(token.slice(1), 16)];
  const escaped = token.length > 1 && token.startsWith("\\") ? token.slice(1) : undefined;
  if (escaped !== undefined && !special.test(escaped) && !/^[ #=]$/.test(escaped))
    throw invalid(
      `${type} contains ${JSON.stringify(token)}; a backslash must precede one of " + , ; < > \\ # = or two hexadecimal digits`,
    );
  if (escaped === undefined && special.test(token))
    throw invalid(`${type} contains ${token}; write \\${token}`);
  if (!(escaped ?? token).isWellFormed()) throw invalid(`${type} contains half a surrogate pair`);
  return new TextEncoder().encode(escaped ?? token);
}

function invalid(problem: string): CryptoError {
  return new CryptoError("INVALID_ARGUMENT", problem);
}

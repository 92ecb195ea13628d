export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;
export type JsonObject = { [name: string]: JsonValue };

/** A string, or a structural character of JSON. */
const tokenPattern = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:,]/g;

/**
 * Parses a JSON object (RFC 8259) and rejects duplicate member names, which parsers resolve differently (RFC
 * 7515, section 4, requires rejecting them or using the last one).
 *
 * @param bytes UTF-8 without a byte order mark
 * @param maxTokens maximum number of strings and structural characters, to limit the memory that a short text
 *   of many brackets takes
 * @returns the object; undefined if the bytes are anything else
 */
export function parseJsonObject(bytes: Uint8Array, maxTokens = Infinity): JsonObject | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    if (maxTokens !== Infinity && hasMoreTokens(text, maxTokens)) return undefined;
    const value: JsonValue = JSON.parse(text);
    return isJsonObject(value) && !hasDuplicateNames(text) ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Counts tokens in one pass, without a regular expression, which could take quadratic time on text that is
 * not JSON.
 */
function hasMoreTokens(text: string, maxTokens: number): boolean {
  let tokens = 0;
  let isInString = false;
  for (let i = 0; i < text.length && tokens <= maxTokens; i++) {
    const character = text[i];
    if (isInString && character === "\\") i++;
    else if (character === '"') isInString = !isInString;
    else if (isInString || !structure.has(character)) continue;
    if (!isInString) tokens++;
  }
  return tokens > maxTokens;
}

const structure = new Set<string | undefined>("{}[]:,");

/** Returns whether a value is a JSON object. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @param text valid JSON, so that a string before a colon is a member name of the innermost object */
function hasDuplicateNames(text: string): boolean {
  const openScopes: Set<unknown>[] = [];
  let lastString = "";
  for (const [token] of text.matchAll(tokenPattern)) {
    if (token === "{" || token === "[") openScopes.push(new Set());
    else if (token === "}" || token === "]") openScopes.pop();
    else if (token === ":") {
      const names = openScopes.at(-1);
      // Escapes can spell one name in several ways, so names are compared after parsing.
      const name: unknown = JSON.parse(lastString);
      if (names?.has(name)) return true;
      names?.add(name);
    } else lastString = token;
  }
  return false;
}

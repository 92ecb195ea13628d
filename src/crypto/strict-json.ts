export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;
export type JsonObject = { [name: string]: JsonValue };

/** One string, or one of the characters that give JSON its structure. */
const tokenPattern = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:,]/g;

/**
 * Reads a JSON object (RFC 8259) and refuses duplicate member names, which JSON.parse and other
 * readers resolve differently (RFC 7515, section 4 requires refusal or the last one).
 *
 * @param bytes UTF-8 without a byte order mark.
 * @param maxTokens the most strings and characters of structure that are read: a bound of the memory that a short text
 *   of many brackets takes.
 * @returns the object, or undefined when the bytes are anything else.
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

/** Counts in one pass over the text, which need not be JSON: a pattern could take quadratic time on other text. */
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

/** Tells a JSON object from every other value. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @param text valid JSON, so that a string before a colon is a member name of the innermost object. */
function hasDuplicateNames(text: string): boolean {
  const openScopes: Set<unknown>[] = [];
  let lastString = "";
  for (const [token] of text.matchAll(tokenPattern)) {
    if (token === "{" || token === "[") openScopes.push(new Set());
    else if (token === "}" || token === "]") openScopes.pop();
    else if (token === ":") {
      const names = openScopes.at(-1);
      // Escapes may spell one name in two ways, so names are compared after parsing.
      const name: unknown = JSON.parse(lastString);
      if (names?.has(name)) return true;
      names?.add(name);
    } else lastString = token;
  }
  return false;
}

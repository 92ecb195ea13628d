export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;
export type JsonObject = { [name: string]: JsonValue };

/** One string, or one of the characters that give JSON its structure. */
const tokenPattern = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/g;

/**
 * Reads a JSON object (RFC 8259) and refuses duplicate member names, which JSON.parse and other
 * readers resolve differently (RFC 7515, section 4 requires refusal or the last one).
 *
 * @param bytes UTF-8 without a byte order mark.
 * @returns the object, or undefined when the bytes are anything else.
 */
export function parseJsonObject(bytes: Uint8Array): JsonObject | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    const value: JsonValue = JSON.parse(text);
    return isJsonObject(value) && !hasDuplicateNames(text) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isJsonObject(value: JsonValue): value is JsonObject {
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

/**
 * Rejects strings from untyped callers.
 *
 * @throws TypeError that names the value
 */
export function requireBytes(values: Readonly<Record<string, unknown>>): void {
  // No instanceof: Uint8Arrays from another frame or a test environment have a different constructor.
  for (const [name, value] of Object.entries(values))
    if (Object.prototype.toString.call(value) !== "[object Uint8Array]")
      throw new TypeError(`${name} must be a Uint8Array, not ${nameType(value)}`);
}

function nameType(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return typeof value === "string"
    ? "a text; encode it, or decode its base64"
    : `a value of type ${typeof value}`;
}

/** Writes base64url without padding (RFC 7515, section 2). */
export function encodeBase64url(bytes: Uint8Array): string {
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
}

/**
 * Reads base64url strictly: no padding, no white space, no character outside the alphabet, no bits
 * beyond the last byte. Each byte string therefore has one text.
 *
 * @returns the bytes, or undefined when the text is not exactly what `encodeBase64url` writes.
 */
export function decodeBase64url(text: string): Uint8Array | undefined {
  try {
    const bytes = Uint8Array.fromBase64(text, { alphabet: "base64url" });
    return encodeBase64url(bytes) === text ? bytes : undefined;
  } catch {
    return undefined;
  }
}

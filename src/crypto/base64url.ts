/** Encodes bytes as base64url without padding (RFC 7515, section 2). */
export function encodeBase64url(bytes: Uint8Array): string {
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
}

/**
 * Decodes base64url strictly: no padding, no white space, no characters outside the alphabet, no stray bits
 * after the last byte. Every byte string therefore has exactly one encoding.
 *
 * @returns undefined if the text is not exactly what `encodeBase64url` produces
 */
export function decodeBase64url(text: string): Uint8Array | undefined {
  try {
    const bytes = Uint8Array.fromBase64(text, { alphabet: "base64url" });
    return encodeBase64url(bytes) === text ? bytes : undefined;
  } catch {
    return undefined;
  }
}

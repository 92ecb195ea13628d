/** Base64 with padding (RFC 4648, section 4), as texts that are signed have it. */
export function toBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

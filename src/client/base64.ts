/** Base64 with padding (RFC 4648, section 4), as used in signed texts. */
export function toBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

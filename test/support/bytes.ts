/** Bytes that tests send, and modifications of them. */

/** The UTF-8 bytes of a text. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

/** Returns a copy with one flipped bit: the lowest bit of the byte, unless a mask is given. */
export function flipBit(bytes: Uint8Array, at = 0, mask = 1): Uint8Array<ArrayBuffer> {
  const copy = Uint8Array.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ mask;
  return copy;
}

/** Bytes in JSON form. */
export function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}

/** The bytes of a base64 field in a REST response. */
export function unbase64(text: unknown): Buffer {
  return Buffer.from(String(text), "base64");
}

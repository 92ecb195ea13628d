/** Bytes that tests send, and what they change about them. */

/** The UTF-8 bytes of a text. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

/** A copy with one bit changed: the lowest of the byte, unless the mask names another. */
export function flipBit(bytes: Uint8Array, at = 0, mask = 1): Uint8Array<ArrayBuffer> {
  const copy = Uint8Array.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ mask;
  return copy;
}

/** Bytes as JSON has them. */
export function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}

/** The bytes of a base64 field of a REST answer. */
export function unbase64(text: unknown): Buffer {
  return Buffer.from(String(text), "base64");
}

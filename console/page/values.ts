/** Converts bytes and numbers to text and back. */

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** UTF-8. */
export function toUtf8(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

/** @throws TypeError for bytes that are not UTF-8 */
export function fromUtf8(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** UTF-8 for reading: what is not UTF-8 shows as replacement characters. */
export function showUtf8(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

/** Two lowercase digits per byte. */
export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Hexadecimal in groups of two bytes, so that lines can break in between. */
export function toHexGroups(bytes: Uint8Array): string {
  return (
    toHex(bytes)
      .match(/.{1,4}/g)
      ?.join(" ") ?? ""
  );
}

/** Base64url without padding (RFC 4648, section 5). */
export function toBase64Url(bytes: Uint8Array): string {
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** @throws DOMException for a text that is not base64url */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

/** A one-byte change. */
export interface Change {
  readonly before: Uint8Array;
  readonly after: Uint8Array<ArrayBuffer>;
  readonly index: number;
}

/**
 * Changes one byte in a copy.
 *
 * @param mask the bits to flip; by default the lowest
 */
export function changeByte(bytes: Uint8Array, index: number, mask = 1): Change {
  const after = Uint8Array.from(bytes, (byte, at) => (at === index ? byte ^ mask : byte));
  return { before: bytes, after, index };
}

export function areEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}

const numbers = new Intl.NumberFormat("en");

/** "3,309". */
export function formatNumber(value: number): string {
  return numbers.format(value);
}

/** "3,309 bytes". */
export function formatBytes(count: number): string {
  return `${formatNumber(count)} ${count === 1 ? "byte" : "bytes"}`;
}

/** "4.2 ms", with a space at which no line breaks. */
export function formatMs(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : formatNumber(Math.round(ms))}\u00a0ms`;
}

/** Shortens a long text in the middle, and says how long it is. */
export function shorten(text: string, maxLength = 96): string {
  if (text.length <= maxLength) return text;
  return `${text.slice(0, 48)}…${text.slice(-12)} (${formatNumber(text.length)} characters)`;
}

/** Decodes pairs of hexadecimal digits. */
export function fromHex(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

/** Shortens an ID, address or hash in the middle: "key-1f2e3d4c…5b6a". */
export function shortenId(id: string): string {
  return id.length <= 20 ? id : `${id.slice(0, 12)}…${id.slice(-4)}`;
}

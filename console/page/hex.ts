/** Reads and shortens hexadecimal. */

/** Decodes pairs of hexadecimal digits. */
export function fromHex(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

/** Shortens an address or hash: "0x1f2e3d4c…5b6a". */
export function shortHex(text: string): string {
  return `${text.slice(0, 10)}…${text.slice(-4)}`;
}

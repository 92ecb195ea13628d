/**
 * Compares two byte strings without stopping at the first difference. JavaScript gives no promise
 * of constant time; this only avoids the most obvious leak.
 */
export function equalBytes(left: Uint8Array, right: Uint8Array): boolean {
  if (left.length !== right.length) return false;
  let difference = 0;
  for (let i = 0; i < left.length; i++) difference |= (left[i] ?? 0) ^ (right[i] ?? 0);
  return difference === 0;
}

/** Overwrites secret bytes with zeros. Skips what is undefined. */
export function wipe(...secrets: (Uint8Array | undefined)[]): void {
  for (const secret of secrets) secret?.fill(0);
}

/** Copies bytes. `slice` will not do: that of a Buffer returns a view. */
export function copyBytes(bytes: Uint8Array): Uint8Array {
  return Uint8Array.from(bytes);
}

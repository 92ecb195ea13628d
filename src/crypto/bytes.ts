/**
 * Compares two byte strings without stopping at the first difference. JavaScript cannot guarantee constant
 * time; this only avoids the most obvious timing leak.
 */
export function equalBytes(left: Uint8Array, right: Uint8Array): boolean {
  if (left.length !== right.length) return false;
  let difference = 0;
  for (let i = 0; i < left.length; i++) difference |= (left[i] ?? 0) ^ (right[i] ?? 0);
  return difference === 0;
}

/** Overwrites secret bytes with zeros. Skips undefined values. */
export function wipe(...secrets: (Uint8Array | undefined)[]): void {
  for (const secret of secrets) secret?.fill(0);
}

/** Overwrites all byte arrays in a plain object with zeros, at any depth. */
export function wipeDeep(value: unknown): void {
  if (value instanceof Uint8Array) wipe(value);
  else if (typeof value === "object" && value !== null) Object.values(value).forEach(wipeDeep);
}

/** Copies bytes. `slice` would not: for a Buffer it returns a view. */
export function copyBytes(bytes: Uint8Array): Uint8Array {
  return Uint8Array.from(bytes);
}

/**
 * Copies a plain object and all byte arrays in it, at any depth. `structuredClone` would copy the whole
 * buffer behind a view, and would not copy shared memory.
 */
export function copyDeep<T>(value: T): T;
export function copyDeep(value: unknown): unknown {
  if (value instanceof Uint8Array) return copyBytes(value);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, copyDeep(field)]));
}

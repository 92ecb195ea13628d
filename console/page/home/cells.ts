/** Bytes as a picture: each byte is a square in a grid, shaded by its value. Positions are in squares. */

/** A part of a value, such as a signature's hint. */
export interface Part {
  readonly name: string;
  readonly bytes: number;
}

/** FIPS 204, section 7.2, algorithm 26, for ML-DSA-65: the parts of a signature in order. */
export const signatureParts: readonly Part[] = [
  { name: "the challenge", bytes: 48 },
  { name: "the response", bytes: 3200 },
  { name: "the hint", bytes: 61 },
];

/** FIPS 204, section 7.2, algorithm 22, for ML-DSA-65: the parts of a public key in order. */
export const publicKeyParts: readonly Part[] = [
  { name: "the seed of the matrix", bytes: 32 },
  { name: "the vector", bytes: 1920 },
];

export function countBytes(parts: readonly Part[]): number {
  return parts.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Squares of one colour. */
export interface Shade {
  /** Index of their part. */
  readonly part: number;
  /** 0, the palest, to `shades` − 1. */
  readonly level: number;
  /** An SVG path. */
  readonly path: string;
}

/** Number of shades for byte values. */
export const shades = 6;
/** A square's side without the gap to the next one. */
export const squareSide = 0.84;
const square = `h${squareSide}v${squareSide}h-${squareSide}z`;

/** Draws each byte as a square. One path per shade is faster than one element per byte. */
export function drawBytes(bytes: Uint8Array, parts: readonly Part[], columns: number): Shade[] {
  const paths = parts.map(() => Array<string>(shades).fill(""));
  let part = 0;
  let end = parts[0]?.bytes ?? 0;
  bytes.forEach((byte, at) => {
    while (at >= end && part < parts.length - 1) {
      part += 1;
      end += parts[part]?.bytes ?? 0;
    }
    const level = Math.floor((byte * shades) / 256);
    const row = paths[part];
    if (row !== undefined) row[level] += `M${at % columns} ${Math.floor(at / columns)}${square}`;
  });
  return paths.flatMap((levels, part) => levels.map((path, level) => ({ part, level, path })));
}

/** Draws a number of squares as one path. */
export function drawSquares(count: number, columns: number): string {
  return Array.from(
    { length: count },
    (_, at) => `M${at % columns} ${Math.floor(at / columns)}${square}`,
  ).join("");
}

export function countRows(count: number, columns: number): number {
  return Math.ceil(count / columns);
}

/** @returns the index of the byte at a position in squares; undefined outside */
export function findByte(x: number, y: number, columns: number, count: number): number | undefined {
  const at = Math.floor(y) * columns + Math.floor(x);
  return x >= 0 && x < columns && y >= 0 && at < count ? at : undefined;
}

/** The name of a byte's part. */
export function nameByte(index: number, parts: readonly Part[]): string {
  let left = index;
  for (const { name, bytes } of parts) {
    if (left < bytes) return name;
    left -= bytes;
  }
  throw new RangeError(`byte ${index} does not exist`);
}

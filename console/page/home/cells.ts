/** Bytes as a picture: each is a square of a grid, whose shade is its value. Positions are in squares. */

/** A part of a value, such as the hint of a signature. */
export interface Part {
  readonly name: string;
  readonly bytes: number;
}

/** FIPS 204, section 7.2, algorithm 26, for ML-DSA-65: the parts of a signature in their order. */
export const signatureParts: readonly Part[] = [
  { name: "the challenge", bytes: 48 },
  { name: "the response", bytes: 3200 },
  { name: "the hint", bytes: 61 },
];

/** FIPS 204, section 7.2, algorithm 22, for ML-DSA-65: the parts of a public key in their order. */
export const publicKeyParts: readonly Part[] = [
  { name: "the seed of the matrix", bytes: 32 },
  { name: "the vector", bytes: 1920 },
];

export function countBytes(parts: readonly Part[]): number {
  return parts.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Squares of one colour. */
export interface Shade {
  /** The index of the part that they belong to. */
  readonly part: number;
  /** 0 for the palest to `shades` − 1. */
  readonly level: number;
  /** An SVG path. */
  readonly path: string;
}

/** Different shades that values are drawn in. */
export const shades = 6;
/** The side of a square without the gap to the next. */
export const squareSide = 0.84;
const square = `h${squareSide}v${squareSide}h-${squareSide}z`;

/** Draws each byte as a square. A path for each shade is quicker than an element for each byte. */
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

/** Draws a number of squares, as one path. */
export function drawSquares(count: number, columns: number): string {
  return Array.from(
    { length: count },
    (_, at) => `M${at % columns} ${Math.floor(at / columns)}${square}`,
  ).join("");
}

export function countRows(count: number, columns: number): number {
  return Math.ceil(count / columns);
}

/** @returns the index of the byte at a place of the picture, which is in squares; undefined beside all */
export function findByte(x: number, y: number, columns: number, count: number): number | undefined {
  const at = Math.floor(y) * columns + Math.floor(x);
  return x >= 0 && x < columns && y >= 0 && at < count ? at : undefined;
}

/** The name of the part that a byte belongs to. */
export function nameByte(index: number, parts: readonly Part[]): string {
  let left = index;
  for (const { name, bytes } of parts) {
    if (left < bytes) return name;
    left -= bytes;
  }
  throw new RangeError(`there is no byte ${index}`);
}

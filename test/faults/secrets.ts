/** Searches for leaked secrets, in every form in which a program may have written them. */

/** Bytes that must not be found. */
export interface Secret {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Where to search. */
export interface Haystack {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Length of a piece of a secret. Any leak of this many consecutive bytes contains a whole piece or more. */
const pieceBytes = 32;
/** Distance between two pieces, in bytes. */
const strideBytes = 16;
/** Minimum number of different bytes in a useful piece: ML-DSA signatures end with zeros (FIPS 204, algorithm 20). */
const differentBytes = 8;

/** Returns "<secret> in <haystack>" for each secret found in a haystack, in any form. */
export function findSecrets(haystacks: readonly Haystack[], secrets: readonly Secret[]): string[] {
  const needles = indexNeedles(secrets);
  const found = haystacks.flatMap(({ name, bytes }) =>
    [bytes, squeeze(bytes)].flatMap((form) => search(form, needles).map((secret) => `${secret} in ${name}`)),
  );
  return [...new Set(found)].sort();
}

interface Needle {
  readonly secret: string;
  readonly bytes: Buffer;
}

/** Needles by their first four bytes. */
type NeedleIndex = Map<number, Needle[]>;

function indexNeedles(secrets: readonly Secret[]): NeedleIndex {
  const index: NeedleIndex = new Map();
  for (const { name, bytes } of secrets)
    for (const form of piecesOf(bytes).flatMap(formsOf)) {
      const start = form.readUInt32BE();
      const bucket = index.get(start) ?? [];
      index.set(start, bucket);
      bucket.push({ secret: name, bytes: form });
    }
  return index;
}

/** Short secrets are a single piece; the last piece of a longer secret ends where it ends. */
function piecesOf(bytes: Uint8Array): Buffer[] {
  if (bytes.length < strideBytes) throw new Error("too short: a match could be chance");
  const last = Math.max(0, bytes.length - pieceBytes);
  const starts = Array.from({ length: Math.ceil(last / strideBytes) + 1 }, (_, i) => i * strideBytes);
  const pieces = starts.map((start) =>
    Buffer.from(bytes).subarray(Math.min(start, last)).subarray(0, pieceBytes),
  );
  return pieces.filter((piece) => new Set(piece).size >= differentBytes);
}

/** The forms of a piece in a file, in JSON, and in Node's output. */
function formsOf(piece: Buffer): Buffer[] {
  const hex = piece.toString("hex");
  const base64 = [0, 1, 2].map((before) => base64At(piece, before));
  const texts = [
    hex,
    hex.toUpperCase(),
    ...base64,
    ...base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_")),
    [...piece].join(),
  ];
  return [piece, ...[...new Set(texts)].map((text) => Buffer.from(text))];
}

/** The base64 characters that these bytes determine alone, with the given number of bytes (modulo 3) before them. */
function base64At(piece: Buffer, before: number): string {
  const text = Buffer.concat([Buffer.alloc(before), piece]).toString("base64");
  return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + piece.length) * 8) / 6));
}

/** Removes the spaces that Node prints between bytes, and the indices of a Uint8Array in JSON. */
function squeeze(bytes: Uint8Array): Buffer {
  const text = Buffer.from(bytes).toString("latin1");
  return Buffer.from(text.replace(/\\?"\d+\\?":|\s/g, ""), "latin1");
}

function search(haystack: Uint8Array, needles: NeedleIndex): string[] {
  const found = new Set<string>();
  let start = 0;
  for (const [i, byte] of haystack.entries()) {
    start = ((start << 8) | byte) >>> 0;
    const at = i - 3;
    for (const { secret, bytes } of needles.get(start) ?? [])
      if (at >= 0 && bytes.equals(haystack.subarray(at, at + bytes.length))) found.add(secret);
  }
  return [...found];
}

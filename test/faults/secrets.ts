/** Looks for secrets where none should be, in every form in which a program may have leaked them. */

/** Bytes that nobody should find. */
export interface Secret {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Where to look. */
export interface Haystack {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Bytes of a piece of a secret: who lets out so many in a row lets out at least one whole piece. */
const pieceBytes = 32;
/** Bytes from one piece to the next. */
const strideBytes = 16;
/** A piece with fewer different bytes tells nothing: signatures of ML-DSA end with zeros (FIPS 204, algorithm 20). */
const differentBytes = 8;

/** @returns "<secret> in <haystack>" for each secret that is in one, in whatever form. */
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

/** Short secrets are one piece; of longer ones the last ends with them. */
function piecesOf(bytes: Uint8Array): Buffer[] {
  if (bytes.length < strideBytes) throw new Error("too short to tell from chance");
  const last = Math.max(0, bytes.length - pieceBytes);
  const starts = Array.from({ length: Math.ceil(last / strideBytes) + 1 }, (_, i) => i * strideBytes);
  const pieces = starts.map((start) =>
    Buffer.from(bytes).subarray(Math.min(start, last)).subarray(0, pieceBytes),
  );
  return pieces.filter((piece) => new Set(piece).size >= differentBytes);
}

/** What a piece looks like in a file, in JSON, and in what Node prints. */
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

/** The characters of base64 that these bytes alone decide, when so many bytes (modulo 3) come before them. */
function base64At(piece: Buffer, before: number): string {
  const text = Buffer.concat([Buffer.alloc(before), piece]).toString("base64");
  return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + piece.length) * 8) / 6));
}

/** Without the spaces that Node prints between bytes, and the indices that JSON gives to those of a Uint8Array. */
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

/** Inner structure of key shares and signatures, by their sizes. */
import { readEcdsaSignature } from "./certificate.ts";
import type { FieldReader, Kind } from "./field.ts";

/** A name, a size in bytes and a kind; or a group of such parts. */
type Part =
  | readonly [name: string, size: number, kind: Kind]
  | readonly [name: string, parts: readonly Part[]];

/** FIPS 203, algorithm 13: ByteEncode12 of the vector, and the seed of the matrix. */
const encapsulationKey = (set: string, bytes: number): Part => [
  `${set} encapsulation key`,
  [
    ["ByteEncode12(t̂)", bytes - 32, "mlkem"],
    ["ρ", 32, "mlkem"],
  ],
];
/** FIPS 203, algorithm 14, with the sizes of section 8, table 3. */
const ciphertext = (set: string, c1: number, c2: number): Part => [
  `${set} ciphertext`,
  [
    ["c1", c1, "mlkem"],
    ["c2", c2, "mlkem"],
  ],
];
/** RFC 8446, section 4.2.8.2. */
const point = (coordinateBytes: number): Part => [
  "UncompressedPointRepresentation",
  [
    ["legacy_form", 1, "ecdh"],
    ["X", coordinateBytes, "ecdh"],
    ["Y", coordinateBytes, "ecdh"],
  ],
];
const x25519: Part = ["X25519 public key", 32, "ecdh"];
const ek768 = encapsulationKey("ML-KEM-768", 1184);
const ek1024 = encapsulationKey("ML-KEM-1024", 1568);
const ct768 = ciphertext("ML-KEM-768", 960, 128);
const ct1024 = ciphertext("ML-KEM-1024", 1408, 160);

type Shares = Readonly<Record<number, readonly [client: readonly Part[], server: readonly Part[]]>>;

/** Key shares by group: RFC 8446, section 4.2.8.2, and RFC 10024, sections 4.1 and 4.2. */
const shares: Shares = {
  23: [[point(32)], [point(32)]],
  24: [[point(48)], [point(48)]],
  25: [[point(66)], [point(66)]],
  29: [[x25519], [x25519]],
  4587: [
    [point(32), ek768],
    [point(32), ct768],
  ],
  4588: [
    [ek768, x25519],
    [ct768, x25519],
  ],
  4589: [
    [point(48), ek1024],
    [point(48), ct1024],
  ],
};

/** FIPS 204, algorithm 26: the parts of a signature by its size. */
const mldsaSignatures: Readonly<Record<number, readonly [number, number, number]>> = {
  2420: [32, 2304, 84],
  3309: [48, 3200, 61],
  4627: [64, 4480, 83],
};

/** Reads a key share; one of unknown structure stays whole. */
export function readKeyShare(reader: FieldReader, group: number, isServer: boolean): void {
  const parts = shares[group]?.[isServer ? 1 : 0] ?? [];
  const size = parts.reduce((sum, part) => sum + sizeOf(part), 0);
  if (size !== reader.left) {
    reader.rest("contents", { kind: "ecdh" });
    if (parts.length > 0) reader.blame(`a share of this group has ${size} bytes`);
    return;
  }
  for (const part of parts) readPart(reader, part);
}

export function readSignature(reader: FieldReader, scheme: number): void {
  const sizes = mldsaSignatures[reader.left];
  const isEcdsa = [1027, 1283, 1539].includes(scheme);
  if (isEcdsa) readEcdsaSignature(reader);
  else if (sizes === undefined || scheme < 2308 || scheme > 2310)
    reader.rest("contents", { kind: "signature" });
  else
    for (const [at, name] of ["c̃", "z", "h"].entries())
      reader.take(name, sizes[at] ?? 0, { kind: "signature" });
}

function sizeOf([, content]: Part): number {
  return typeof content === "number" ? content : content.reduce((sum, part) => sum + sizeOf(part), 0);
}

function readPart(reader: FieldReader, part: Part): void {
  const [name, content, kind] = part;
  if (typeof content === "number") reader.take(name, content, { kind });
  else
    reader.group(name, sizeOf(part), (inner) => {
      for (const each of content) readPart(inner, each);
    });
}

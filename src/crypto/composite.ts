/**
 * Composite signatures (draft-ietf-lamps-pq-composite-sigs-19): one key of two halves, ML-DSA and a classical
 * algorithm, whose signature is valid only if both halves are.
 *
 * Pitfall: an ECDSA half is malleable, and halves of two signatures of one message combine into a third, so a
 * composite signature is unforgeable but not unique (EUF-CMA, section 9.2). Never use its bytes as an
 * identifier. Never use a half's key alone or in a second composite (section 9.3).
 */
import { createHash } from "node:crypto";
import {
  type ClassicalAlgorithm,
  type CompositeAlgorithm,
  compositeHalves,
  signatureAlgorithms,
} from "./algorithms.ts";
import { element, objectIdentifier, type Shape, tag } from "./der.ts";
import type { IncrementalHash } from "./engine.ts";

const encoder = new TextEncoder();
/** Section 2.2: the prefix of every message that a composite key signs. */
const prefix = encoder.encode("CompositeAlgorithmSignatures2025");

/** Bytes of the two halves of a public key, a secret key or a signature. */
export interface Halves {
  readonly mlDsa: Uint8Array;
  readonly classical: Uint8Array;
}

/** Section 6: binds the algorithm into the signed message. It is also the context of the ML-DSA half. */
export function labelOf(algorithm: CompositeAlgorithm): Uint8Array {
  return encoder.encode(`COMPSIG-${algorithm}`);
}

/**
 * Splits a public key (section 4.1).
 *
 * @param publicKey `publicKeyBytes` long
 * @returns views
 */
export function splitPublicKey(algorithm: CompositeAlgorithm, publicKey: Uint8Array): Halves {
  return splitAt(publicKey, signatureAlgorithms[compositeHalves[algorithm].mlDsa].publicKeyBytes);
}

/**
 * Splits a signature (section 4.3).
 *
 * @param signature longer than its ML-DSA half
 * @returns views
 */
export function splitSignature(algorithm: CompositeAlgorithm, signature: Uint8Array): Halves {
  return splitAt(signature, signatureAlgorithms[compositeHalves[algorithm].mlDsa].signatureBytes);
}

function splitAt(bytes: Uint8Array, length: number): Halves {
  return { mlDsa: bytes.subarray(0, length), classical: bytes.subarray(length) };
}

/**
 * Starts M′ = Prefix ‖ Label ‖ len(ctx) ‖ ctx ‖ SHA-512(M), which both halves sign (section 3.2, step 2).
 *
 * @param context 0 to 255 bytes
 */
export function startRepresentative(algorithm: CompositeAlgorithm, context: Uint8Array): IncrementalHash {
  const head = Buffer.concat([prefix, labelOf(algorithm), Uint8Array.of(context.length), context]);
  const hash = createHash("sha512");
  return {
    update: (chunk) => void hash.update(chunk),
    digest: () => Buffer.concat([head, hash.digest()]),
  };
}

/** Computes M′ of a whole message on the calling thread: 1.5 ms per megabyte. */
export function represent(
  algorithm: CompositeAlgorithm,
  message: Uint8Array,
  context: Uint8Array = new Uint8Array(),
): Uint8Array {
  const representative = startRepresentative(algorithm, context);
  representative.update(message);
  return representative.digest();
}

/** Returns whether bytes have the form of an algorithm's M′, so that its key signs nothing else. */
export function isRepresentative(algorithm: CompositeAlgorithm, bytes: Uint8Array): boolean {
  const start = Buffer.concat([prefix, labelOf(algorithm)]);
  const contextBytes = bytes[start.length] ?? 0;
  return (
    Buffer.compare(bytes.subarray(0, start.length), start) === 0 &&
    bytes.length === start.length + 1 + contextBytes + 64
  );
}

/** secp256r1 and secp384r1 (RFC 5480, section 2.1.1.1). */
const namedCurves = { "ECDSA-P256": "1.2.840.10045.3.1.7", "ECDSA-P384": "1.3.132.0.34" } as const;
const scalarBytes = { "ECDSA-P256": 32, "ECDSA-P384": 48 } as const;

/**
 * The shape of a secret key (section 4.2): the ML-DSA seed followed by the Ed25519 seed, or by an ECPrivateKey
 * with the curve and without the public key (section 4; RFC 5915, section 3).
 */
export function secretKeyShape(algorithm: CompositeAlgorithm): Shape {
  return [{ slot: "seed", length: 32 }, ...classicalShape(compositeHalves[algorithm].classical)];
}

function classicalShape(classical: ClassicalAlgorithm): Shape {
  if (classical === "Ed25519") return [{ slot: "raw", length: 32 }];
  return element(
    tag.sequence,
    ...element(tag.integer, Uint8Array.of(1)),
    ...element(tag.octetString, { slot: "raw", length: scalarBytes[classical] }),
    ...element(tag.constructedContext0, ...objectIdentifier(namedCurves[classical])),
  );
}

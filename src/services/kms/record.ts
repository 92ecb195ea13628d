/** What the key service knows of a key. */
import {
  type Algorithm,
  isKemAlgorithm,
  isSignatureAlgorithm,
  type KemAlgorithm,
  type PostQuantumSignatureAlgorithm,
} from "../../crypto/algorithms.ts";

/** The algorithms that keys can be of. */
export type KeyAlgorithm = PostQuantumSignatureAlgorithm | KemAlgorithm;

/** What a key is for. */
export type KeyUsage = "SIGN" | "KEM";

/** Where a key is in its life; it only ever goes on, from left to right. */
export type KeyState = "ACTIVE" | "ROTATED" | "DESTROYED";

/** A key without its secret half. */
export interface KeyRecord {
  readonly keyId: string;
  readonly alias: string;
  readonly algorithm: KeyAlgorithm;
  readonly usage: KeyUsage;
  readonly state: KeyState;
  /** Raw, as FIPS 203, 204 or 205 has it. */
  readonly publicKey: Uint8Array;
  /** Who made it. */
  readonly owner: string;
  readonly createdAt: Date;
}

/** Tells what keys of an algorithm are for. */
export function findUsage(algorithm: KeyAlgorithm): KeyUsage {
  return isKemAlgorithm(algorithm) ? "KEM" : "SIGN";
}

/** Tells whether keys can be of an algorithm. */
export function isKeyAlgorithm(name: string): name is KeyAlgorithm {
  return (
    isKemAlgorithm(name as Algorithm) || (isSignatureAlgorithm(name as Algorithm) && name !== "ECDSA-P256")
  );
}

/** The record of a key, as plain values. */
import {
  type Algorithm,
  isKemAlgorithm,
  isSignatureAlgorithm,
  type KemAlgorithm,
  type PostQuantumSignatureAlgorithm,
} from "../../crypto/algorithms.ts";

/** The algorithms of stored keys. */
export type KeyAlgorithm = PostQuantumSignatureAlgorithm | KemAlgorithm;

/** What a key is for. */
export type KeyUsage = "SIGN" | "KEM";

/** The state of a key; it changes only from left to right. */
export type KeyState = "ACTIVE" | "ROTATED" | "DESTROYED";

/** A key without its secret half. */
export interface KeyRecord {
  readonly keyId: string;
  readonly alias: string;
  readonly algorithm: KeyAlgorithm;
  readonly usage: KeyUsage;
  readonly state: KeyState;
  /** Raw, as FIPS 203, 204 or 205 defines it. */
  readonly publicKey: Uint8Array;
  /** Who made it. */
  readonly owner: string;
  readonly createdAt: Date;
}

/** Finds the usage of an algorithm's keys. */
export function findUsage(algorithm: KeyAlgorithm): KeyUsage {
  return isKemAlgorithm(algorithm) ? "KEM" : "SIGN";
}

/** Tells whether stored keys can have an algorithm. */
export function isKeyAlgorithm(name: string): name is KeyAlgorithm {
  return (
    isKemAlgorithm(name as Algorithm) || (isSignatureAlgorithm(name as Algorithm) && name !== "ECDSA-P256")
  );
}

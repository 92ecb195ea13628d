/** Algorithms, usages and states of keys. */
import { type Algorithm, algorithms, isKemAlgorithm } from "../../crypto/algorithms.ts";

export type KeyAlgorithm = Algorithm;

export type KeyUsage = "SIGN" | "KEM";

/** A key's state: see docs/keys.md for the transitions. */
export type KeyState = "ACTIVE" | "ROTATED" | "DISABLED" | "DESTROY_SCHEDULED" | "DESTROYED";

/** Returns the usage of an algorithm's keys. */
export function findUsage(algorithm: KeyAlgorithm): KeyUsage {
  return isKemAlgorithm(algorithm) ? "KEM" : "SIGN";
}

/** Returns whether stored keys can have an algorithm. */
export function isKeyAlgorithm(name: string): name is KeyAlgorithm {
  return Object.hasOwn(algorithms, name);
}

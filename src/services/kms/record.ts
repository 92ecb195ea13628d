/** The algorithms, usages and states of keys. */
import { type Algorithm, algorithms, isKemAlgorithm } from "../../crypto/algorithms.ts";

/** The algorithms of stored keys. */
export type KeyAlgorithm = Algorithm;

/** The usage of a key. */
export type KeyUsage = "SIGN" | "KEM";

/** The state of a key: see docs/keys.md for the changes between states. */
export type KeyState = "ACTIVE" | "ROTATED" | "DISABLED" | "DESTROY_SCHEDULED" | "DESTROYED";

/** Finds the usage of an algorithm's keys. */
export function findUsage(algorithm: KeyAlgorithm): KeyUsage {
  return isKemAlgorithm(algorithm) ? "KEM" : "SIGN";
}

/** Tells whether stored keys can have an algorithm. */
export function isKeyAlgorithm(name: string): name is KeyAlgorithm {
  return Object.hasOwn(algorithms, name);
}

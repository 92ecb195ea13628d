/** Algorithms and states of keys. */
import { type Algorithm, algorithms, isKemAlgorithm } from "../../crypto/algorithms.ts";
import { isHpkeAlgorithm } from "../../crypto/hpke.ts";
import type { KeyUsage } from "../../crypto/key-uses.ts";

export type KeyAlgorithm = Algorithm;

/** A key's state: see docs/keys.md for the transitions. */
export type KeyState = "ACTIVE" | "ROTATED" | "DISABLED" | "DESTROY_SCHEDULED" | "DESTROYED";

/** Lists the usages that keys of an algorithm can have, the default first. A key keeps one of them for life. */
export function listUsages(algorithm: KeyAlgorithm): readonly [KeyUsage, ...KeyUsage[]] {
  if (!isKemAlgorithm(algorithm)) return ["SIGN"];
  return isHpkeAlgorithm(algorithm) ? ["KEM", "ENCRYPT"] : ["KEM"];
}

/** Returns whether stored keys can have an algorithm. */
export function isKeyAlgorithm(name: string): name is KeyAlgorithm {
  return Object.hasOwn(algorithms, name);
}

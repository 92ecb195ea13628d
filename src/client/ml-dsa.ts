/** ML-DSA parameter sets (FIPS 204) in JavaScript, loaded on first use. */
import type { DSA } from "@noble/post-quantum/ml-dsa.js";
import type { MlDsaAlgorithm } from "../crypto/algorithms.ts";

/** Parameter set names, as the server uses them. */
export type MlDsaName = MlDsaAlgorithm;

/** @returns undefined for an unknown parameter set */
export async function findMlDsa(name: string): Promise<DSA | undefined> {
  const { mlDsa } = await import("../crypto/noble.ts");
  return new Map<string, DSA>(Object.entries(mlDsa)).get(name);
}

/** @throws RangeError for an unknown parameter set */
export async function loadMlDsa(name: string): Promise<DSA> {
  const found = await findMlDsa(name);
  if (found === undefined) throw new RangeError(`${name} is not an ML-DSA parameter set`);
  return found;
}

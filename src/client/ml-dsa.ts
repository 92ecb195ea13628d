/** The parameter sets of ML-DSA (FIPS 204) in JavaScript, which is loaded at its first use. */
import type { DSA } from "@noble/post-quantum/ml-dsa.js";
import type { MlDsaAlgorithm } from "../crypto/algorithms.ts";

/** The names of the sets, as the server has them. */
export type MlDsaName = MlDsaAlgorithm;

/** @returns undefined for a name of no set */
export async function findMlDsa(name: string): Promise<DSA | undefined> {
  const { mlDsa } = await import("../crypto/noble.ts");
  return new Map<string, DSA>(Object.entries(mlDsa)).get(name);
}

/** @throws RangeError for a name of no set */
export async function loadMlDsa(name: string): Promise<DSA> {
  const found = await findMlDsa(name);
  if (found === undefined) throw new RangeError(`${name} is not a parameter set of ML-DSA`);
  return found;
}

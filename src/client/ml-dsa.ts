/** The parameter sets of ML-DSA (FIPS 204), which are loaded at their first use. */
import type { DSA } from "@noble/post-quantum/ml-dsa.js";

/** The names of the sets, as the server has them. */
export type MlDsaName = "ML-DSA-44" | "ML-DSA-65" | "ML-DSA-87";

/** @returns undefined for a name of no set */
export async function findMlDsa(name: string): Promise<DSA | undefined> {
  const { ml_dsa44, ml_dsa65, ml_dsa87 } = await import("@noble/post-quantum/ml-dsa.js");
  return new Map([
    ["ML-DSA-44", ml_dsa44],
    ["ML-DSA-65", ml_dsa65],
    ["ML-DSA-87", ml_dsa87],
  ]).get(name);
}

/** @throws RangeError for a name of no set */
export async function loadMlDsa(name: string): Promise<DSA> {
  const found = await findMlDsa(name);
  if (found === undefined) throw new RangeError(`${name} is not a parameter set of ML-DSA`);
  return found;
}

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { AlgorithmInfoSchema } from "#gen/pqc/algorithm_pb.ts";
import { type AlgorithmInfo, kemAlgorithms, signatureAlgorithms } from "../../crypto/algorithms.ts";

/**
 * Lists the post-quantum parameter sets by family: ML-KEM, X-Wing, ML-DSA, SLH-DSA. This service does not
 * sign with composites.
 *
 * @param category "SIGNATURE" or "KEM"; anything else lists both
 */
export function listAlgorithms(category: string): MessageInitShape<typeof AlgorithmInfoSchema>[] {
  return [...Object.values(kemAlgorithms), ...Object.values(signatureAlgorithms)]
    .filter((set) => set.nistLevel !== undefined && set.family !== "Composite")
    .filter((set) => set.category === category || (category !== "SIGNATURE" && category !== "KEM"))
    .map(toMessage);
}

function toMessage(set: AlgorithmInfo): MessageInitShape<typeof AlgorithmInfoSchema> {
  const { name, standard, nistLevel, category, publicKeyBytes, secretKeyBytes } = set;
  const common = { name, standard, nistLevel: nistLevel ?? 0, category, publicKeyBytes, secretKeyBytes };
  return set.category === "KEM"
    ? { ...common, ciphertextBytes: set.ciphertextBytes, sharedSecretBytes: set.sharedSecretBytes }
    : { ...common, signatureBytes: set.signatureBytes };
}

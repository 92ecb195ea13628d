import { isMlDsaAlgorithm, type MlDsaAlgorithm } from "../../src/crypto/algorithms.ts";
import { FormatError } from "./format-error.ts";

/** Refuses algorithms that RFC 9964 has no name for in JOSE and COSE. @throws FormatError */
export function requireMlDsa(algorithm: string): MlDsaAlgorithm {
  if (isMlDsaAlgorithm(algorithm)) return algorithm;
  throw new FormatError(
    `JWS and COSE have ML-DSA only (RFC 9964), no ${algorithm}; use the format dsse or cms`,
  );
}

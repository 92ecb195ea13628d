import { isMlDsaAlgorithm, type MlDsaAlgorithm } from "../../src/crypto/algorithms.ts";
import { FormatError } from "./format-error.ts";

/**
 * Rejects algorithms that RFC 9964 does not define for JOSE and COSE.
 *
 * @throws FormatError
 */
export function requireMlDsa(algorithm: string): MlDsaAlgorithm {
  if (isMlDsaAlgorithm(algorithm)) return algorithm;
  throw new FormatError(
    `JWS and COSE support only ML-DSA (RFC 9964), not ${algorithm}; use --format dsse or --format cms`,
  );
}

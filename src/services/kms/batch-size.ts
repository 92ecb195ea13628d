/** How many signatures fit into one response. */
import { signatureAlgorithms } from "../../crypto/algorithms.ts";
import type { KeyAlgorithm } from "./record.ts";

/** How a response is encoded: binary, or JSON with bytes in base64. */
export type ResponseForm = "binary" | "json";

/** Maximum bytes of a response: gRPC clients accept no more by default. */
const maxResponseBytes = 4 * 1024 * 1024;
/** Bytes for everything but the signatures: status, keyId, algorithm, and what the protocol adds. */
const frameBytes = 1024;
/** Bytes around a signature: two tags with lengths of up to 3 bytes; `{"signature":""},`. */
const aroundBytes = { binary: 8, json: 17 };

/** Counts the signatures of an algorithm that fit into a BatchSignResponse of 4 MiB. */
export function countFitting(algorithm: KeyAlgorithm, form: ResponseForm): number {
  const signatureBytes =
    algorithm in signatureAlgorithms
      ? signatureAlgorithms[algorithm as keyof typeof signatureAlgorithms].signatureBytes
      : 0;
  const bytes = form === "json" ? Math.ceil(signatureBytes / 3) * 4 : signatureBytes;
  return Math.floor((maxResponseBytes - frameBytes) / (bytes + aroundBytes[form]));
}

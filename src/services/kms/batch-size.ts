/** How many signatures fit into one response. */
import { type SignatureAlgorithm, signatureAlgorithms } from "../../crypto/algorithms.ts";

/** Response encoding: binary, or JSON with bytes in base64. */
export type ResponseForm = "binary" | "json";

/** Maximum response size: gRPC clients accept no more by default. */
const maxResponseBytes = 4 * 1024 * 1024;
/** Bytes for everything but the signatures: status, keyId, algorithm, and protocol framing. */
const frameBytes = 1024;
/** Bytes around a signature: two tags with lengths of up to 3 bytes; `{"signature":""},`. */
const aroundBytes = { binary: 8, json: 17 };

/** Returns how many signatures of an algorithm fit into a 4 MiB BatchSignResponse. */
export function countFitting(algorithm: SignatureAlgorithm, form: ResponseForm): number {
  const { signatureBytes } = signatureAlgorithms[algorithm];
  const bytes = form === "json" ? Math.ceil(signatureBytes / 3) * 4 : signatureBytes;
  return Math.floor((maxResponseBytes - frameBytes) / (bytes + aroundBytes[form]));
}

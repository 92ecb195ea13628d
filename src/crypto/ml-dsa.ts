import { createHash, type Hash } from "node:crypto";
import type { IncrementalHash } from "./engine.ts";

/** Length of μ, and of tr inside it, in bytes (FIPS 204, algorithm 7, line 6, and algorithm 6, line 9). */
export const muBytes = 64;

/**
 * Starts μ = H(tr ‖ M′, 64), the only part of a message that ML-DSA signs (FIPS 204, algorithm 7, line 6).
 *
 * @param publicKey raw; tr = H(publicKey, 64)
 * @param context 0 to 255 bytes
 */
export function startMu(publicKey: Uint8Array, context: Uint8Array): IncrementalHash {
  // FIPS 204, algorithm 2, line 10: M′ = 0 ‖ |ctx| ‖ ctx ‖ M; a leading 1 would select HashML-DSA.
  const mu = startH()
    .update(startH().update(publicKey).digest())
    .update(Uint8Array.of(0, context.length))
    .update(context);
  return { update: (chunk) => void mu.update(chunk), digest: () => new Uint8Array(mu.digest()) };
}

/** SHAKE256 (FIPS 202, section 6.2) with 64 bytes of output. */
function startH(): Hash {
  return createHash("shake256", { outputLength: muBytes });
}

import type { Engine, IncrementalHash } from "./engine.ts";

/** Length of μ, and of tr inside it, in bytes (FIPS 204, algorithm 7, line 6, and algorithm 6, line 9). */
export const muBytes = 64;

/**
 * Starts μ = H(tr ‖ M′, 64), the only part of a message that ML-DSA signs (FIPS 204, algorithm 7, line 6).
 *
 * @param publicKey raw; tr = H(publicKey, 64)
 * @param context 0 to 255 bytes
 */
export function startMu(
  startShake256: Engine["startShake256"],
  publicKey: Uint8Array,
  context: Uint8Array,
): IncrementalHash {
  const tr = startShake256(muBytes);
  tr.update(publicKey);
  const mu = startShake256(muBytes);
  mu.update(tr.digest());
  // FIPS 204, algorithm 2, line 10: M′ = 0 ‖ |ctx| ‖ ctx ‖ M; a leading 1 would select HashML-DSA.
  mu.update(Uint8Array.of(0, context.length));
  mu.update(context);
  return mu;
}

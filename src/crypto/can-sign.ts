import type { SignatureAlgorithm } from "./algorithms.ts";
import { withFreshKeyPair } from "./fresh-key-pair.ts";
import type { CryptoProvider } from "./provider.ts";
import { shareResult } from "./share-result.ts";

/** Milliseconds to cache a health check result: anyone may call the check, and each run costs a signature. */
export const healthMs = 5000;

/**
 * Creates a health check that reports which algorithms work. It signs and verifies with a fresh key pair, at
 * most once per `healthMs` for all callers together.
 */
export function createSignCheck<Name extends SignatureAlgorithm>(
  provider: CryptoProvider,
  algorithms: readonly Name[],
): () => Promise<ReadonlySet<Name>> {
  return shareResult(healthMs, async () => {
    const working = await Promise.all(algorithms.map((algorithm) => canSign(provider, algorithm)));
    return new Set(algorithms.filter((_, i) => working[i]));
  });
}

async function canSign({ system }: CryptoProvider, algorithm: SignatureAlgorithm): Promise<boolean> {
  const message = new TextEncoder().encode("is it working?");
  try {
    return await withFreshKeyPair(system, algorithm, async ({ publicKey, secretKey }) =>
      system.verify(publicKey, message, await system.sign(secretKey, message)),
    );
  } catch {
    // Calls that need the algorithm report the cause; the health check reports only the status.
    return false;
  }
}

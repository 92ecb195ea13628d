import type { Algorithm } from "./algorithms.ts";
import type { CryptoProvider, KeyPair } from "./provider.ts";

/**
 * Runs an operation with a new key pair and erases the secret key afterwards, even if the operation fails.
 */
export async function withFreshKeyPair<T>(
  provider: Pick<CryptoProvider, "generateKeyPair">,
  algorithm: Algorithm,
  use: (pair: KeyPair) => Promise<T>,
): Promise<T> {
  const pair = await provider.generateKeyPair(algorithm);
  try {
    return await use(pair);
  } finally {
    pair.secretKey.erase();
  }
}

/**
 * Runs an operation with a new key pair per algorithm. Erases all secret keys afterwards, even if the
 * operation or the generation of one of the pairs fails.
 */
export async function withFreshKeyPairs<T>(
  provider: Pick<CryptoProvider, "generateKeyPair">,
  algorithms: readonly Algorithm[],
  use: (pairs: readonly KeyPair[]) => Promise<T>,
): Promise<T> {
  const generated = await Promise.allSettled(
    algorithms.map((algorithm) => provider.generateKeyPair(algorithm)),
  );
  const pairs = generated.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  try {
    for (const result of generated) if (result.status === "rejected") throw result.reason;
    return await use(pairs);
  } finally {
    for (const { secretKey } of pairs) secretKey.erase();
  }
}

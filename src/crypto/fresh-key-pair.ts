import type { Algorithm } from "./algorithms.ts";
import type { CryptoProvider, KeyPair } from "./provider.ts";

/** Generates a key pair and lends it. Erases its secret key after use, also if the use fails. */
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
 * Generates a key pair for each algorithm and lends them. Erases all secret keys after use, also if the use fails or
 * if one of the pairs cannot be generated.
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

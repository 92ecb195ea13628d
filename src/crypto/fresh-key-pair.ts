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

import type { Algorithm } from "./algorithms.ts";
import type { CryptoProvider, KeyPair } from "./provider.ts";

/** Makes a key pair and lends it. Its secret key is erased when the use is over, also when that fails. */
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

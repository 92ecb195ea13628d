import type { SignatureAlgorithm } from "./algorithms.ts";
import type { CryptoProvider } from "./provider.ts";

/** Tells whether an algorithm works now, by signing and verifying with a pair made for it. */
export async function canSign(provider: CryptoProvider, algorithm: SignatureAlgorithm): Promise<boolean> {
  const message = new TextEncoder().encode("is it working?");
  try {
    const { publicKey, secretKey } = await provider.generateKeyPair(algorithm);
    return await provider.verify(publicKey, message, await provider.sign(secretKey, message));
  } catch {
    // Why not is for the calls that need it to say; this one is asked whether.
    return false;
  }
}

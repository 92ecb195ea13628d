import type { SignatureAlgorithm } from "./algorithms.ts";
import type { CryptoProvider } from "./provider.ts";

/** Tells whether an algorithm works now, by signing and verifying with a pair made for it. */
export async function canSign(provider: CryptoProvider, algorithm: SignatureAlgorithm): Promise<boolean> {
  const message = new TextEncoder().encode("is it working?");
  try {
    const { patient } = provider;
    const { publicKey, secretKey } = await patient.generateKeyPair(algorithm);
    return await patient.verify(publicKey, message, await patient.sign(secretKey, message));
  } catch {
    // Why not is for the calls that need it to say; this one is asked whether.
    return false;
  }
}

import { isSignatureAlgorithm, type SignatureAlgorithm } from "../../crypto/algorithms.ts";
import { withFreshKeyPair } from "../../crypto/fresh-key-pair.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";

const defaultSignatureAlgorithm: SignatureAlgorithm = "ML-DSA-65";

/**
 * Signs a message with a one-time key pair (FIPS 204, section 5.2; FIPS 205, section 10.2.1; pure, empty
 * context). Erases the secret key before it returns.
 *
 * @param algorithm a name that the proto's rules admit; empty for the default
 */
export function signWithFreshKey(provider: CryptoProvider, message: Uint8Array, algorithm: string) {
  const name = toSignatureAlgorithm(algorithm);
  return withFreshKeyPair(provider, name, async ({ publicKey, secretKey }) => {
    const signature = await provider.sign(secretKey, message);
    return { algorithm: name, signature, publicKey: publicKey.exportRaw(), publicKeyPem: publicKey.toPem() };
  });
}

/** Narrows a name that the proto's rules admit; empty means the default. */
export function toSignatureAlgorithm(name: string): SignatureAlgorithm {
  if (name === "") return defaultSignatureAlgorithm;
  if (isSignatureAlgorithm(name)) return name;
  throw new Error(`the proto admits the algorithm ${name}, which no provider has`);
}

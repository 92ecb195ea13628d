import { isSignatureAlgorithm, type SignatureAlgorithm } from "../../crypto/algorithms.ts";
import { withFreshKeyPair } from "../../crypto/fresh-key-pair.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";

/** The signature algorithm of requests that name none. */
const defaultSignatureAlgorithm: SignatureAlgorithm = "ML-DSA-65";

/** A signature, and the public key of the pair that was made for it. */
export interface OneTimeSignature {
  readonly algorithm: SignatureAlgorithm;
  readonly signature: Uint8Array;
  readonly publicKey: Uint8Array;
  readonly publicKeyPem: string;
}

/**
 * Signs a message with a key pair made for it alone (FIPS 204, section 5.2; FIPS 205, section 10.2.1; pure,
 * empty context). The secret key is erased before the answer is given.
 *
 * @param algorithm a name that the proto's rules admit; empty for the default.
 */
export function signOnce(
  provider: CryptoProvider,
  message: Uint8Array,
  algorithm: string,
): Promise<OneTimeSignature> {
  const name = toSignatureAlgorithm(algorithm);
  return withFreshKeyPair(provider, name, async ({ publicKey, secretKey }) => {
    const signature = await provider.sign(secretKey, message);
    return { algorithm: name, signature, publicKey: publicKey.exportRaw(), publicKeyPem: publicKey.toPem() };
  });
}

/** Takes a name that the proto's rules have let pass; empty means the default. */
export function toSignatureAlgorithm(name: string): SignatureAlgorithm {
  if (name === "") return defaultSignatureAlgorithm;
  if (isSignatureAlgorithm(name)) return name;
  throw new Error(`the proto admits the algorithm ${name}, which no provider has`);
}

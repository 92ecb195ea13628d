/** Signs, verifies and agrees on secrets, with keys that the server does not keep. */
import type { ExchangeKeysRequest } from "#gen/pqc/pqc_service_pb.ts";
import { isKemAlgorithm, isSignatureAlgorithm } from "../../crypto/algorithms.ts";
import { withFreshKeyPair } from "../../crypto/fresh-key-pair.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import {
  checkSignatureLength,
  type PublicKeyFields,
  readGivenKey,
  readPublicKey,
  withGivenOrFreshKey,
} from "../fields.ts";

/**
 * Signs a message with a one-time key pair (FIPS 204, section 5.2; FIPS 205, section 10.2.1; pure, empty
 * context). Erases the secret key before it returns.
 *
 * @param algorithm a name that the proto's rules admit; empty for the default
 */
export function signWithFreshKey(provider: CryptoProvider, message: Uint8Array, algorithm: string) {
  const name = readName(algorithm, "ML-DSA-65", isSignatureAlgorithm);
  return withFreshKeyPair(provider, name, async ({ publicKey, secretKey }) => {
    const signature = await provider.sign(secretKey, message);
    return { algorithm: name, signature, publicKey: publicKey.exportRaw(), publicKeyPem: publicKey.toPem() };
  });
}

export interface VerifyInput extends PublicKeyFields {
  readonly data: Uint8Array;
  readonly signature: Uint8Array;
  readonly algorithm: string;
}

/**
 * Returns whether a signature verifies (FIPS 204, section 5.3; FIPS 205, section 10.3; pure, empty context).
 *
 * @throws KEY_INVALID; LENGTH_INVALID for a signature whose length is wrong for the algorithm: that is a
 *   caller mistake, not an invalid signature
 */
export async function verify(provider: CryptoProvider, input: VerifyInput): Promise<boolean> {
  const algorithm = readName(input.algorithm, "ML-DSA-65", isSignatureAlgorithm);
  const publicKey = readPublicKey(provider, algorithm, input, "publicKey");
  checkSignatureLength(algorithm, input.signature);
  return provider.verify(publicKey, input.data, input.signature);
}

/**
 * Encapsulates a fresh shared secret to the caller's key, or to a new key pair (FIPS 203, section 7.2;
 * draft-connolly-cfrg-xwing-kem-11, section 5.4).
 *
 * @throws KEY_INVALID
 */
export async function exchangeKeys(provider: CryptoProvider, req: ExchangeKeysRequest) {
  const algorithm = readName(req.algorithm, "ML-KEM-768", isKemAlgorithm);
  const given = readGivenKey(provider, algorithm, req, "publicKey");
  return withGivenOrFreshKey(provider, algorithm, given, async (publicKey, secretKey) => {
    const { ciphertext, sharedSecret } = await provider.encapsulate(publicKey);
    return {
      algorithm,
      encapsulatedKey: ciphertext,
      sharedSecret,
      sharedSecretLength: sharedSecret.length,
      publicKey: publicKey.exportRaw(),
      publicKeyPem: publicKey.toPem(),
      // From the one-time pair. An ML-KEM seed is d, then z (FIPS 203, section 7.1), 64 bytes; an X-Wing seed
      // has 32 bytes.
      decapsulationKey: secretKey?.exportRaw(),
      decapsulationKeySeed: secretKey?.exportSeed(),
    };
  });
}

/**
 * Narrows a name that the proto's rules admit.
 *
 * @param fallback what the empty string means
 */
function readName<Name extends string>(
  given: string,
  fallback: Name,
  isKnown: (name: string) => name is Name,
): Name {
  if (given === "") return fallback;
  if (isKnown(given)) return given;
  throw new Error(`the proto admits ${given}, which no provider has`);
}

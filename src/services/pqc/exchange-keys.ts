import { isKemAlgorithm, type KemAlgorithm } from "../../crypto/algorithms.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import type { PublicKeyFields } from "../fields.ts";
import { readGivenKey, withGivenOrFreshKey } from "../given-key.ts";

/** The key encapsulation mechanism for requests that do not name one. */
const defaultKemAlgorithm: KemAlgorithm = "ML-KEM-768";

/** Both sides of a key exchange, except what the caller already has. */
export interface KeyExchange {
  readonly algorithm: KemAlgorithm;
  readonly encapsulatedKey: Uint8Array;
  readonly sharedSecret: Uint8Array;
  readonly publicKey: Uint8Array;
  readonly publicKeyPem: string;
  /** The key of the one-time pair; undefined if the caller gave a public key. */
  readonly decapsulationKey: Uint8Array | undefined;
  /** Its seed: for ML-KEM d then z (FIPS 203, section 7.1), 64 bytes; for X-Wing 32 bytes. */
  readonly decapsulationKeySeed: Uint8Array | undefined;
}

/**
 * Encapsulates a fresh shared secret to the caller's key, or to a new pair (FIPS 203, section 7.2;
 * draft-connolly-cfrg-xwing-kem-11, section 5.4).
 *
 * @throws KEY_INVALID
 */
export async function exchangeKeys(
  provider: CryptoProvider,
  input: PublicKeyFields & { readonly algorithm: string },
): Promise<KeyExchange> {
  const algorithm = toKemAlgorithm(input.algorithm);
  const given = readGivenKey(provider, algorithm, input);
  return withGivenOrFreshKey(provider, algorithm, given, async (publicKey, secretKey) => {
    const { ciphertext, sharedSecret } = await provider.encapsulate(publicKey);
    return {
      algorithm,
      encapsulatedKey: ciphertext,
      sharedSecret,
      publicKey: publicKey.exportRaw(),
      publicKeyPem: publicKey.toPem(),
      decapsulationKey: secretKey?.exportRaw(),
      decapsulationKeySeed: secretKey?.exportSeed(),
    };
  });
}

/** Narrows a name that the proto's rules admit; empty means the default. */
function toKemAlgorithm(name: string): KemAlgorithm {
  if (name === "") return defaultKemAlgorithm;
  if (isKemAlgorithm(name)) return name;
  throw new Error(`the proto admits the mechanism ${name}, which no provider has`);
}

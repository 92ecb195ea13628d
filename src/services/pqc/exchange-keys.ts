import type { ExchangeKeysRequest } from "#gen/pqc/pqc_service_pb.ts";
import { isKemAlgorithm, type KemAlgorithm } from "../../crypto/algorithms.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import { readGivenKey, withGivenOrFreshKey } from "../given-key.ts";

const defaultKemAlgorithm: KemAlgorithm = "ML-KEM-768";

/**
 * Encapsulates a fresh shared secret to the caller's key, or to a new key pair (FIPS 203, section 7.2;
 * draft-connolly-cfrg-xwing-kem-11, section 5.4).
 *
 * @throws KEY_INVALID
 */
export async function exchangeKeys(provider: CryptoProvider, req: ExchangeKeysRequest) {
  const algorithm = toKemAlgorithm(req.algorithm);
  const given = readGivenKey(provider, algorithm, req);
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

/** Narrows a name that the proto's rules admit; empty means the default. */
function toKemAlgorithm(name: string): KemAlgorithm {
  if (name === "") return defaultKemAlgorithm;
  if (isKemAlgorithm(name)) return name;
  throw new Error(`the proto admits the mechanism ${name}, which no provider has`);
}

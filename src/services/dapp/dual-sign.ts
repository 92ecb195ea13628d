import { withFreshKeyPairs } from "../../crypto/fresh-key-pair.ts";
import type { CryptoProvider, KeyPair } from "../../crypto/provider.ts";

const algorithms = ["ECDSA-P256", "ML-DSA-65", "MLDSA65-ECDSA-P256-SHA512"] as const;

/**
 * Signs the same bytes with ECDSA (FIPS 186-5, secp256r1, SHA-256), with ML-DSA-65 (FIPS 204, pure), and with a
 * composite of both, each with a new key pair.
 */
export function dualSign(provider: CryptoProvider, data: Uint8Array) {
  return withFreshKeyPairs(provider, algorithms, async (pairs) => {
    const [ecdsa, mldsa, composite] = pairs as readonly [KeyPair, KeyPair, KeyPair];
    const [ecdsaSignature, mldsaSignature, compositeSignature] = await Promise.all([
      provider.sign(ecdsa.secretKey, data),
      provider.sign(mldsa.secretKey, data),
      provider.sign(composite.secretKey, data),
    ]);
    return {
      ecdsaSignature,
      mldsaSignature,
      ecdsaPublicKey: ecdsa.publicKey.exportRaw(),
      mldsaPublicKey: mldsa.publicKey.exportRaw(),
      ecdsaPublicKeyPem: ecdsa.publicKey.toPem(),
      mldsaPublicKeyPem: mldsa.publicKey.toPem(),
      compositeSignature,
      compositePublicKey: composite.publicKey.exportRaw(),
      compositePublicKeyPem: composite.publicKey.toPem(),
    };
  });
}

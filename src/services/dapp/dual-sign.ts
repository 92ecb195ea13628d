import {
  compositeAlgorithms,
  encodeCompositePublicKeyPem,
  exportCompositePublicKey,
  joinKeyPairs,
  signComposite,
} from "../../crypto/composite.ts";
import { withFreshKeyPairs } from "../../crypto/fresh-key-pair.ts";
import type { CryptoProvider, KeyPair } from "../../crypto/provider.ts";

/**
 * Signs the same bytes with ECDSA (FIPS 186-5, secp256r1, SHA-256), with ML-DSA-65 (FIPS 204, pure), and with a
 * composite of both, each with a new key pair.
 */
export function dualSign(provider: CryptoProvider, data: Uint8Array) {
  const algorithms = ["ECDSA-P256", "ML-DSA-65", ...compositeAlgorithms] as const;
  return withFreshKeyPairs(provider, algorithms, async (pairs) => {
    const [ecdsa, mldsa, first, second] = pairs as readonly [KeyPair, KeyPair, KeyPair, KeyPair];
    const composite = joinKeyPairs(first, second);
    const [ecdsaSignature, mldsaSignature, compositeSignature] = await Promise.all([
      provider.sign(ecdsa.secretKey, data),
      provider.sign(mldsa.secretKey, data),
      signComposite(provider, composite, data),
    ]);
    const compositePublicKey = exportCompositePublicKey(composite);
    return {
      ecdsaSignature,
      mldsaSignature,
      ecdsaPublicKey: ecdsa.publicKey.exportRaw(),
      mldsaPublicKey: mldsa.publicKey.exportRaw(),
      ecdsaPublicKeyPem: ecdsa.publicKey.toPem(),
      mldsaPublicKeyPem: mldsa.publicKey.toPem(),
      compositeSignature,
      compositePublicKey,
      compositePublicKeyPem: encodeCompositePublicKeyPem(compositePublicKey),
    };
  });
}

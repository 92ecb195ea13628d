import {
  encodeCompositePublicKeyPem,
  exportCompositePublicKey,
  generateCompositeKeyPair,
  signComposite,
} from "../../crypto/composite.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";

/** Two signatures of the same data, with the keys that verify them. */
export interface DualSigned {
  /** DER. */
  readonly ecdsaSignature: Uint8Array;
  readonly mldsaSignature: Uint8Array;
  /** An uncompressed point. */
  readonly ecdsaPublicKey: Uint8Array;
  readonly mldsaPublicKey: Uint8Array;
  readonly ecdsaPublicKeyPem: string;
  readonly mldsaPublicKeyPem: string;
  readonly compositeSignature: Uint8Array;
  readonly compositePublicKey: Uint8Array;
  readonly compositePublicKeyPem: string;
}

/**
 * Signs the same bytes with ECDSA (FIPS 186-5, secp256r1, SHA-256), with ML-DSA-65 (FIPS 204, pure), and with a
 * composite of both, each with a new key pair.
 */
export async function dualSign(provider: CryptoProvider, data: Uint8Array): Promise<DualSigned> {
  const [ecdsa, mldsa, composite] = await Promise.all([
    provider.generateKeyPair("ECDSA-P256"),
    provider.generateKeyPair("ML-DSA-65"),
    generateCompositeKeyPair(provider),
  ]);
  const secretKeys = [ecdsa.secretKey, mldsa.secretKey, ...Object.values(composite.secretKey)];
  try {
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
  } finally {
    for (const secretKey of secretKeys) secretKey.erase();
  }
}

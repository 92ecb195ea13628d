import { isMlDsaAlgorithm, type MlDsaAlgorithm } from "./algorithms.ts";
import { encodeBase64url } from "./base64url.ts";
import { CryptoError } from "./crypto-error.ts";
import type { CryptoProvider, PublicKey } from "./provider.ts";

/** A public key as a JSON Web Key of type AKP, "algorithm key pair" (RFC 9964, section 3). */
export interface PublicJwk {
  readonly kty: "AKP";
  readonly alg: MlDsaAlgorithm;
  /** The raw public key in base64url. */
  readonly pub: string;
  /** SHA-256 thumbprint (RFC 7638 and RFC 9964, section 6), 43 characters. */
  readonly kid: string;
  readonly use: "sig";
}

/**
 * Writes an ML-DSA public key as a JSON Web Key for a key set.
 *
 * @throws UNSUPPORTED for other algorithms: RFC 9964 registers ML-DSA only.
 */
export function toPublicJwk(provider: CryptoProvider, publicKey: PublicKey): PublicJwk {
  const { algorithm } = publicKey;
  if (!isMlDsaAlgorithm(algorithm))
    throw new CryptoError("UNSUPPORTED", `no standard defines a JWK of ${algorithm}`);
  const pub = encodeBase64url(publicKey.exportRaw());
  return { kty: "AKP", alg: algorithm, pub, kid: computeThumbprint(provider, algorithm, pub), use: "sig" };
}

/** SHA-256 over the required members in lexicographic order (RFC 7638, section 3), in base64url. */
function computeThumbprint(provider: CryptoProvider, alg: MlDsaAlgorithm, pub: string): string {
  const canonicalJwk = JSON.stringify({ alg, kty: "AKP", pub });
  return encodeBase64url(provider.sha256(new TextEncoder().encode(canonicalJwk)));
}

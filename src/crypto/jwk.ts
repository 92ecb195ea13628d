import { isMlDsaAlgorithm, type MlDsaAlgorithm } from "./algorithms.ts";
import { decodeBase64url, encodeBase64url } from "./base64url.ts";
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

/**
 * Reads a public JSON Web Key of type AKP.
 *
 * @returns the key and its thumbprint as `kid`, regardless of the `kid` in the JWK.
 * @throws INVALID_KEY when it is of another type or algorithm, holds a private key, or `pub` is not
 *   strict base64url of the right length.
 */
export function importPublicJwk(
  provider: CryptoProvider,
  jwk: Readonly<Record<string, unknown>>,
): { keyId: string; publicKey: PublicKey } {
  const { kty, alg, pub } = jwk;
  if (kty !== "AKP") throw new CryptoError("INVALID_KEY", "the JWK must have kty AKP");
  if (typeof alg !== "string" || !isMlDsaAlgorithm(alg)) {
    throw new CryptoError("INVALID_KEY", "the JWK must have alg ML-DSA-44, ML-DSA-65 or ML-DSA-87");
  }
  if ("priv" in jwk)
    throw new CryptoError("INVALID_KEY", "the JWK contains a private key; expected a public key");
  const raw = typeof pub === "string" ? decodeBase64url(pub) : undefined;
  if (raw === undefined)
    throw new CryptoError("INVALID_KEY", "pub of the JWK must be base64url without padding");
  const publicKey = provider.importPublicKey(alg, { raw });
  return { keyId: computeThumbprint(provider, alg, encodeBase64url(raw)), publicKey };
}

/** SHA-256 over the required members in lexicographic order (RFC 7638, section 3), in base64url. */
function computeThumbprint(provider: CryptoProvider, alg: MlDsaAlgorithm, pub: string): string {
  const canonicalJwk = JSON.stringify({ alg, kty: "AKP", pub });
  return encodeBase64url(provider.sha256(new TextEncoder().encode(canonicalJwk)));
}

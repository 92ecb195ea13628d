/** Imports JSON Web Keys in tests, where producers are trusted. */
import type { MlDsaAlgorithm } from "../../src/crypto/algorithms.ts";
import { decodeBase64url } from "../../src/crypto/base64url.ts";
import { toPublicJwk } from "../../src/crypto/jwk.ts";
import type { CryptoProvider, PublicKey } from "../../src/crypto/provider.ts";

/** @returns the key, with its thumbprint as `keyId` */
export function importPublicJwk(
  provider: CryptoProvider,
  { alg, pub = "" }: { readonly alg?: string | undefined; readonly pub?: string },
): { keyId: string; publicKey: PublicKey } {
  const raw = decodeBase64url(pub) ?? new Uint8Array();
  const publicKey = provider.importPublicKey(alg as MlDsaAlgorithm, { raw });
  return { keyId: toPublicJwk(publicKey).kid, publicKey };
}

/** Optional public keys in requests; without one, the server generates a key pair. */
import type { Algorithm } from "../crypto/algorithms.ts";
import { withFreshKeyPair } from "../crypto/fresh-key-pair.ts";
import type { CryptoProvider, PublicKey, SecretKey } from "../crypto/provider.ts";
import { type PublicKeyFields, readPublicKey } from "./fields.ts";

/**
 * Reads the public key from a request, if present.
 *
 * @param prefix common prefix of both field names, as for `readPublicKey`
 * @throws KEY_INVALID naming the field
 */
export function readGivenKey(
  provider: CryptoProvider,
  algorithm: Algorithm,
  fields: PublicKeyFields,
  prefix = "",
): PublicKey | undefined {
  const isGiven = fields.publicKey.length > 0 || fields.publicKeyPem !== "";
  return isGiven ? readPublicKey(provider, algorithm, fields, prefix) : undefined;
}

/** Calls `use` with the given key, or with a new key pair whose secret key is erased afterwards. */
export function withGivenOrFreshKey<T>(
  provider: CryptoProvider,
  algorithm: Algorithm,
  given: PublicKey | undefined,
  use: (publicKey: PublicKey, secretKey: SecretKey | undefined) => Promise<T>,
): Promise<T> {
  if (given !== undefined) return use(given, undefined);
  return withFreshKeyPair(provider, algorithm, ({ publicKey, secretKey }) => use(publicKey, secretKey));
}

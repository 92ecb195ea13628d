/** Encrypts small data under a key, and decrypts it; encryption-head.ts describes the format. */
import { headBytes, writeHead, writeInfo } from "./encryption-head.ts";
import { minSealedBytes, open, seal } from "./hpke.ts";
import type { CryptoProvider, PublicKey, SecretKey } from "./provider.ts";

/** Data and what it is bound to. */
export interface BoundData {
  /** The plaintext or the ciphertext. */
  readonly data: Uint8Array;
  readonly associatedData: Uint8Array;
}

/** A key to encrypt with. */
export interface RecipientKey {
  readonly keyId: string;
  readonly publicKey: PublicKey;
}

/** Encrypts data. Needs no secret, so a holder of the public key can do it without the server. */
export async function encryptData(
  provider: CryptoProvider,
  { keyId, publicKey }: RecipientKey,
  { data, associatedData: aad }: BoundData,
): Promise<Uint8Array> {
  const head = writeHead(keyId);
  const sealed = await seal(provider, publicKey, data, { info: writeInfo(head), aad });
  return new Uint8Array(Buffer.concat([head, sealed]));
}

/**
 * Decrypts data with the key that its head names.
 *
 * @returns the plaintext. The caller wipes it.
 * @throws UNWRAP_FAILED for every fault after the head, without distinction, and after the same work
 */
export function decryptData(
  provider: CryptoProvider,
  secretKey: SecretKey,
  { data, associatedData: aad }: BoundData,
): Promise<Uint8Array> {
  const sealed = data.subarray(headBytes);
  const minBytes = minSealedBytes(secretKey.algorithm);
  // A ciphertext that was cut is padded, so that it takes the path of any other that does not open.
  const whole = sealed.length < minBytes ? Buffer.concat([sealed], minBytes) : sealed;
  return open(provider, secretKey, whole, { info: writeInfo(data), aad });
}

/**
 * Seals secrets for storage: AES-256-GCM (NIST SP 800-38D) with a separate data key for each secret, which is
 * itself sealed with the master key. The record's identity is bound to both as associated data, so a sealed
 * secret that was moved to a different record does not open.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { wipe } from "./bytes.ts";
import { CryptoError } from "./crypto-error.ts";

/** Length of the random nonce before each ciphertext, in bytes (SP 800-38D, section 8.2.2). */
const nonceBytes = 12;
/** Length of the tag after each ciphertext, in bytes. */
const tagBytes = 16;
const keyBytes = 32;

/** A secret that only the master key can open. Each blob is nonce ‖ ciphertext ‖ tag. */
export interface SealedSecret {
  /** The master key's ID; see nameMasterKey. */
  readonly masterKeyId: string;
  /** 60 bytes. Changing the master key rewrites only this field and the ID. */
  readonly wrappedDataKey: Uint8Array;
  /** 28 bytes longer than the secret. */
  readonly ciphertext: Uint8Array;
}

/** Derives a master key's ID, which does not reveal it: 128 bits of a labelled SHA-256, in hexadecimal. */
export function nameMasterKey(masterKey: Uint8Array): string {
  return createHash("sha256").update("qsp master key id").update(masterKey).digest("hex").slice(0, 32);
}

/**
 * Seals a secret.
 *
 * @param identity the record, such as "issuer_keys/<key_id>/seed"; opening requires the same identity
 */
export function sealSecret(masterKey: Uint8Array, identity: string, secret: Uint8Array): SealedSecret {
  const dataKey = randomBytes(keyBytes);
  try {
    return {
      masterKeyId: nameMasterKey(masterKey),
      wrappedDataKey: sealBytes(masterKey, `${identity}/data-key`, dataKey),
      ciphertext: sealBytes(dataKey, identity, secret),
    };
  } finally {
    wipe(dataKey);
  }
}

/**
 * Opens a sealed secret. The caller wipes it after use.
 *
 * @throws SEAL_BROKEN, without distinction, for a different master key, a different identity or any changed
 *   bit
 */
export function openSecret(masterKey: Uint8Array, identity: string, sealed: SealedSecret): Uint8Array {
  const dataKey = openBytes(masterKey, `${identity}/data-key`, sealed.wrappedDataKey);
  try {
    return openBytes(dataKey, identity, sealed.ciphertext);
  } finally {
    wipe(dataKey);
  }
}

/**
 * Rewraps a secret's data key with a new master key; the ciphertext stays the same. The old key cannot open
 * the result.
 *
 * @throws SEAL_BROKEN, as openSecret does
 */
export function rewrapSecret(
  oldMasterKey: Uint8Array,
  newMasterKey: Uint8Array,
  identity: string,
  sealed: SealedSecret,
): SealedSecret {
  const dataKey = openBytes(oldMasterKey, `${identity}/data-key`, sealed.wrappedDataKey);
  try {
    return {
      masterKeyId: nameMasterKey(newMasterKey),
      wrappedDataKey: sealBytes(newMasterKey, `${identity}/data-key`, dataKey),
      ciphertext: sealed.ciphertext,
    };
  } finally {
    wipe(dataKey);
  }
}

/** Encrypts bytes with a single-purpose key. Opening requires the same identity. */
export function sealBytes(key: Uint8Array, identity: string, plaintext: Uint8Array): Uint8Array {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(Buffer.from(identity));
  return Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

/**
 * Opens bytes sealed by `sealBytes`.
 *
 * @throws SEAL_BROKEN
 */
export function openBytes(key: Uint8Array, identity: string, blob: Uint8Array): Uint8Array {
  try {
    const end = blob.length - tagBytes;
    const nonce = blob.subarray(0, nonceBytes);
    const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes });
    decipher.setAAD(Buffer.from(identity)).setAuthTag(blob.subarray(end));
    return Buffer.concat([decipher.update(blob.subarray(nonceBytes, end)), decipher.final()]);
  } catch {
    throw new CryptoError(
      "SEAL_BROKEN",
      "a sealed record cannot be decrypted: the master key is wrong, or the record was changed",
    );
  }
}

/**
 * The file key of an age file, sealed to X-Wing keys: stanzas of the type mlkem768x25519 (C2SP age, "The
 * mlkem768x25519 recipient type").
 */
import { createPublicKey, diffieHellman, generateKeyPairSync } from "node:crypto";
import { usageError } from "../../src/cli/exit-codes.ts";
import { wipe } from "../../src/crypto/bytes.ts";
import { CryptoError } from "../../src/crypto/crypto-error.ts";
import { kemIds } from "../../src/crypto/hpke.ts";
import { openMessage, sealMessage, tagBytes } from "../../src/crypto/hpke-suite.ts";
import type { CryptoProvider, PublicKey } from "../../src/crypto/provider.ts";
import { decodeBase64, encodeBase64, type Stanza } from "./stanza.ts";

/** HPKE in base mode with X-Wing, HKDF-SHA256 and ChaCha20-Poly1305. */
const kemId = kemIds["X-Wing"];
const context = {
  info: new TextEncoder().encode("age-encryption.org/mlkem768x25519"),
  aad: new Uint8Array(),
  aead: "ChaCha20Poly1305",
} as const;
const type = "mlkem768x25519";
/** Bytes of an X-Wing ciphertext, which ends with an X25519 point. */
const [encBytes, pointBytes] = [1120, 32];
export const fileKeyBytes = 16;

/** A file key, sealed to one key. It does not reveal which one. */
export interface SealedFileKey {
  /** X-Wing ciphertext, 1120 bytes. */
  readonly enc: Uint8Array;
  /** 32 bytes. */
  readonly ciphertext: Uint8Array;
}

/** Seals a file key (16 bytes) to an X-Wing key. */
export async function sealFileKey(
  provider: CryptoProvider,
  recipient: PublicKey,
  fileKey: Uint8Array,
): Promise<Stanza> {
  const { ciphertext, sharedSecret } = await provider.encapsulate(recipient);
  try {
    const body = sealMessage({ kemId, sharedSecret }, fileKey, context);
    return { type, args: [encodeBase64(ciphertext)], body };
  } finally {
    wipe(sharedSecret);
  }
}

/**
 * Reads a sealed file key from a stanza.
 *
 * @returns undefined for a stanza of a different type
 * @throws CliError if it is malformed
 */
export function readSealedFileKey({ type: found, args, body }: Stanza): SealedFileKey | undefined {
  if (found !== type) return undefined;
  const [encoded = "", ...others] = args;
  const enc = decodeBase64(encoded);
  if (others.length > 0 || enc?.length !== encBytes)
    throw usageError(
      `the header is malformed: a stanza ${type} needs one argument, ${encBytes} bytes in base64`,
    );
  // The length is checked before decryption: a longer file key could open under several keys.
  if (body.length !== fileKeyBytes + tagBytes)
    throw usageError(
      `the header is malformed: a stanza ${type} has ${body.length} bytes, not ${fileKeyBytes + tagBytes}`,
    );
  if (isLowOrder(enc.subarray(encBytes - pointBytes)))
    throw usageError(`the header is malformed: the X25519 part of a stanza ${type} is a low-order point`);
  return { enc, ciphertext: body };
}

/** Whether every X25519 secret with a point is zero, which RFC 7748, section 6.1, lets protocols reject. */
function isLowOrder(point: Uint8Array): boolean {
  const publicKey = createPublicKey({ key: point, format: "raw-public", asymmetricKeyType: "x25519" });
  const { privateKey } = generateKeyPairSync("x25519");
  try {
    wipe(diffieHellman({ privateKey, publicKey }));
    return false;
  } catch {
    return true;
  }
}

/**
 * Opens a file key, and wipes the shared secret.
 *
 * @param sharedSecret what the key decapsulates from `enc`, 32 bytes
 * @returns the file key, which the caller wipes; undefined if it was sealed to a different key
 */
export function openFileKey({ ciphertext }: SealedFileKey, sharedSecret: Uint8Array): Uint8Array | undefined {
  try {
    return openMessage({ kemId, sharedSecret }, ciphertext, context);
  } catch (error) {
    if (error instanceof CryptoError && error.code === "UNWRAP_FAILED") return undefined;
    throw error;
  } finally {
    wipe(sharedSecret);
  }
}

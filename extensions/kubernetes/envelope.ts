/**
 * The ciphertexts that the plugin returns to the API server: AES-256-GCM (NIST SP 800-38D) under a single-use
 * key derived from the shared secret of one encapsulation.
 *
 * A ciphertext is format (1 byte) ‖ nonce (12) ‖ encrypted plaintext ‖ tag (16). The KEM ciphertext exceeds
 * the kilobyte that KMS v2 allows for a ciphertext, so it travels as an annotation.
 */
import { createHash, hkdfSync } from "node:crypto";
import { wipe } from "../../src/crypto/bytes.ts";
import { CryptoError } from "../../src/crypto/crypto-error.ts";
import { openBytes, sealBytes } from "../../src/crypto/sealing.ts";
import { refuse, refuseField } from "../../src/errors.ts";
import { ciphertextInvalid } from "./reasons.ts";

/**
 * The annotation with the KEM ciphertext. KMS v2 requires domain names; ICANN reserves .internal for private
 * use.
 */
export const kemAnnotation = "kem-ciphertext.qsp.internal";

/** First byte of a ciphertext. A new format gets a new number. */
const format = 1;
/** Format, nonce and tag. */
const overheadBytes = 1 + 12 + 16;
/** Maximum ciphertext size in KMS v2, in bytes. */
const maxCiphertextBytes = 1024;
/** Maximum plaintext size in bytes. */
export const maxPlaintextBytes = maxCiphertextBytes - overheadBytes;

/** The key of one envelope. */
export interface EnvelopeKey {
  /** Identifies the key version. */
  readonly keyId: string;
  /** The ML-KEM or X-Wing ciphertext. */
  readonly kemCiphertext: Uint8Array;
  /** The encapsulated secret, 32 bytes. The caller wipes it. */
  readonly sharedSecret: Uint8Array;
}

/** A Decrypt request, parsed; its form has been checked. */
export interface Envelope {
  readonly keyId: string;
  readonly kemCiphertext: Uint8Array;
  /** Nonce, encrypted plaintext and tag. */
  readonly sealed: Uint8Array;
}

/**
 * Checks a plaintext's length.
 *
 * @throws LENGTH_INVALID
 */
export function checkPlaintext({ length }: Uint8Array): void {
  if (length > maxPlaintextBytes)
    throw refuseField(
      "plaintext",
      `must have at most ${maxPlaintextBytes} bytes, so that the ciphertext fits into a kilobyte; it has ${length}`,
      "LENGTH_INVALID",
    );
}

/** Encrypts a plaintext that checkPlaintext accepted. */
export function sealEnvelope(key: EnvelopeKey, plaintext: Uint8Array): Uint8Array {
  return withDerivedKey(key, (aesKey) =>
    Buffer.concat([Uint8Array.of(format), sealBytes(aesKey, identityOf(key), plaintext)]),
  );
}

/**
 * Decrypts an envelope. The caller wipes the plaintext.
 *
 * @throws CIPHERTEXT_INVALID if any part was changed. ML-KEM then returns a different secret instead of an
 *   error (FIPS 203, section 6.3).
 */
export function openEnvelope(envelope: Envelope, sharedSecret: Uint8Array): Uint8Array {
  const key = { ...envelope, sharedSecret };
  try {
    return withDerivedKey(key, (aesKey) => openBytes(aesKey, identityOf(key), envelope.sealed));
  } catch (error) {
    if (!(error instanceof CryptoError)) throw error;
    throw refuse(
      ciphertextInvalid,
      `the ciphertext cannot be decrypted with key ${envelope.keyId}: it, its annotations or its key_id was changed`,
    );
  }
}

/**
 * Parses a Decrypt request.
 *
 * @throws FIELD_INVALID, LENGTH_INVALID
 */
export function readEnvelope(request: {
  readonly keyId: string;
  readonly ciphertext: Uint8Array;
  readonly annotations: Readonly<Record<string, Uint8Array>>;
}): Envelope {
  const { keyId, ciphertext, annotations } = request;
  if (!isKeyId(keyId)) throw refuseField("key_id", 'must be "key-" and a UUID, as Encrypt returned it');
  if (ciphertext.length < overheadBytes || ciphertext.length > maxCiphertextBytes)
    throw refuseField(
      "ciphertext",
      `must have ${overheadBytes} to ${maxCiphertextBytes} bytes; it has ${ciphertext.length}`,
      "LENGTH_INVALID",
    );
  if (ciphertext[0] !== format)
    throw refuseField(
      "ciphertext",
      `begins with format ${ciphertext[0]}; this version supports format ${format}`,
    );
  const names = Object.keys(annotations);
  const kemCiphertext = Object.hasOwn(annotations, kemAnnotation) ? annotations[kemAnnotation] : undefined;
  if (names.length !== 1 || kemCiphertext === undefined)
    throw refuseField("annotations", `must have one entry, ${kemAnnotation}, as Encrypt returned it`);
  return { keyId, kemCiphertext, sealed: ciphertext.subarray(1) };
}

/** Whether a text has the form of a key ID. */
export function isKeyId(text: string): boolean {
  return /^key-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text);
}

/**
 * Derives an envelope's AES key, passes it to a function and wipes it (HKDF-SHA256, RFC 5869, without a
 * salt).
 */
function withDerivedKey<T>(
  { keyId, kemCiphertext, sharedSecret }: EnvelopeKey,
  use: (key: Uint8Array) => T,
): T {
  // The KEM ciphertext is hashed, because node:crypto accepts at most 1024 bytes. All parts except the label
  // and the ID have a fixed length, and neither of these contains a zero byte.
  const info = Buffer.concat([
    Buffer.from(`qsp kubernetes kms v2 format ${format}\0${keyId}\0`),
    createHash("sha256").update(kemCiphertext).digest(),
  ]);
  const aesKey = new Uint8Array(hkdfSync("sha256", sharedSecret, new Uint8Array(), info, 32));
  try {
    return use(aesKey);
  } finally {
    wipe(aesKey);
  }
}

/** Additional authenticated data for AES-GCM. */
function identityOf({ keyId }: Pick<EnvelopeKey, "keyId">): string {
  return `kubernetes/${format}/${keyId}`;
}

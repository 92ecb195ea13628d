/**
 * The part of HPKE after its KEM: the key schedule of RFC 9180, section 5.1, in base mode with HKDF-SHA256, and one message
 * with an AEAD (section 5.2). On node:crypto it costs a fifth of what packages over the Web Crypto API do.
 */
import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";
import { wipe } from "./bytes.ts";
import { CryptoError } from "./crypto-error.ts";

/** An AEAD of RFC 9180, section 7.3. Both have 32-byte keys, 12-byte nonces and 16-byte tags. */
export type HpkeAead = keyof typeof aeads;

/** The inputs that both sides know. */
export interface HpkeContext {
  readonly info: Uint8Array;
  readonly aad: Uint8Array;
  /** AES-256-GCM by default. */
  readonly aead?: HpkeAead;
}

/** What a KEM gives to the key schedule. */
export interface HpkeSecret {
  /** The identifier of the KEM (registry "HPKE KEM Identifiers"). */
  readonly kemId: number;
  /** 32 bytes. */
  readonly sharedSecret: Uint8Array;
}

/** Bytes of an AEAD's tag (RFC 9180, section 7.3). */
export const tagBytes = 16;

/** Identifier of HKDF-SHA256 (RFC 9180, section 7.2). */
const kdfId = 0x0001;
const authTagLength = tagBytes;
const aeads = {
  "AES-256-GCM": {
    id: 0x0002,
    seal: (key: Uint8Array, nonce: Uint8Array) =>
      createCipheriv("aes-256-gcm", key, nonce, { authTagLength }),
    open: (key: Uint8Array, nonce: Uint8Array) =>
      createDecipheriv("aes-256-gcm", key, nonce, { authTagLength }),
  },
  ChaCha20Poly1305: {
    id: 0x0003,
    seal: (key: Uint8Array, nonce: Uint8Array) =>
      createCipheriv("chacha20-poly1305", key, nonce, { authTagLength }),
    open: (key: Uint8Array, nonce: Uint8Array) =>
      createDecipheriv("chacha20-poly1305", key, nonce, { authTagLength }),
  },
} as const;
const [keyBytes, nonceBytes] = [32, 12];
/** Section 5.1: the mode without a pre-shared key and without authentication of the sender. */
const baseMode = Uint8Array.of(0);
const none = new Uint8Array();

/**
 * Encrypts one message.
 *
 * @returns the ciphertext, `tagBytes` longer than the plaintext
 */
export function sealMessage(secret: HpkeSecret, plaintext: Uint8Array, context: HpkeContext): Buffer {
  const { aead, key, nonce } = scheduleKey(secret, context);
  const sealing = aead.seal(key, nonce).setAAD(context.aad, { plaintextLength: plaintext.length });
  wipe(key);
  return Buffer.concat([sealing.update(plaintext), sealing.final(), sealing.getAuthTag()]);
}

/**
 * Decrypts one message.
 *
 * @throws UNWRAP_FAILED
 */
export function openMessage(secret: HpkeSecret, sealed: Uint8Array, context: HpkeContext): Uint8Array {
  const { aead, key, nonce } = scheduleKey(secret, context);
  const end = sealed.length - tagBytes;
  const opening = aead.open(key, nonce).setAAD(context.aad, { plaintextLength: end });
  opening.setAuthTag(sealed.subarray(end));
  wipe(key);
  const plaintext = opening.update(sealed.subarray(0, end));
  try {
    opening.final();
  } catch {
    wipe(plaintext);
    const cause = "it was changed, or sealed for another key, or with different info or aad";
    throw new CryptoError("UNWRAP_FAILED", `the ciphertext does not open: ${cause}`);
  }
  return new Uint8Array(plaintext.buffer, plaintext.byteOffset, plaintext.length);
}

/** RFC 9180, section 5.1, KeySchedule: the key and the nonce of the first message. The caller wipes the key. */
function scheduleKey({ kemId, sharedSecret }: HpkeSecret, { info, aead: name = "AES-256-GCM" }: HpkeContext) {
  const aead = aeads[name];
  const { suite, pskIdHash } = openSuite(kemId, aead.id);
  const context = Buffer.concat([baseMode, pskIdHash, labeledExtract(none, suite, "info_hash", info)]);
  const secret = labeledExtract(sharedSecret, suite, "secret", none);
  const expand = (label: string, length: number): Buffer =>
    labeledExpand(secret, suite, label, context, length);
  const scheduled = { aead, key: expand("key", keyBytes), nonce: expand("base_nonce", nonceBytes) };
  wipe(secret);
  return scheduled;
}

interface Suite {
  readonly suite: Buffer;
  readonly pskIdHash: Buffer;
}

const suites = new Map<string, Suite>();

/** Computes once what depends only on the suite. */
function openSuite(kemId: number, aeadId: number): Suite {
  return suites.getOrInsertComputed(`${kemId} ${aeadId}`, () => {
    const suite = Buffer.concat([Buffer.from("HPKE"), writeUint16s(kemId, kdfId, aeadId)]);
    return { suite, pskIdHash: labeledExtract(none, suite, "psk_id_hash", none) };
  });
}

/** RFC 9180, section 4, LabeledExtract. HMAC pads an empty salt as RFC 5869 pads one that is not given. */
function labeledExtract(salt: Uint8Array, suite: Buffer, label: string, input: Uint8Array): Buffer {
  return createHmac("sha256", salt).update("HPKE-v1").update(suite).update(label).update(input).digest();
}

/** RFC 9180, section 4, LabeledExpand, for at most the 32 bytes of one block of RFC 5869, section 2.3. */
function labeledExpand(secret: Buffer, suite: Buffer, label: string, info: Buffer, length: number): Buffer {
  const mac = createHmac("sha256", secret).update(writeUint16s(length)).update("HPKE-v1").update(suite);
  return mac.update(label).update(info).update(Uint8Array.of(1)).digest().subarray(0, length);
}

function writeUint16s(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(2 * values.length);
  values.forEach((value, at) => void bytes.writeUInt16BE(value, 2 * at));
  return bytes;
}

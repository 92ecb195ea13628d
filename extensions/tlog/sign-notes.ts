/** Signs a log's checkpoints. */
import { createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import type { CryptoProvider, SecretKey } from "../../src/crypto/provider.ts";
import type { NoteSignature } from "./note.ts";
import { buildSignedMessage, encodeUint64, ownContext } from "./signed-messages.ts";
import { computeKeyId, type VerifierKey } from "./verifier-keys.ts";

/** A key that signs notes. */
export interface NoteSigner {
  readonly key: VerifierKey;
  /** @param text the note's text; for a cosignature it is a checkpoint */
  sign(text: string, now: Date): Promise<NoteSignature>;
}

/** The DER prefix of an Ed25519 PrivateKeyInfo, before its 32 bytes (RFC 8410, section 7). */
const ed25519Prefix = Buffer.from("302e020100300506032b657004220420", "hex");

/** Imports an Ed25519 seed, 32 bytes (RFC 8032, section 5.1.5). */
export function importEd25519Seed(seed: Uint8Array): KeyObject {
  const der = Buffer.concat([ed25519Prefix, seed]);
  try {
    return createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  } finally {
    der.fill(0);
  }
}

/** Signs notes with Ed25519, type 0x01, for clients without post-quantum algorithms. */
export function createEd25519Signer(name: string, secretKey: KeyObject): NoteSigner {
  const { x = "" } = createPublicKey(secretKey).export({ format: "jwk" });
  const key: VerifierKey = {
    name,
    type: "Ed25519",
    publicKey: Uint8Array.from(Buffer.from(x, "base64url")),
  };
  return createSigner(key, async (message) => sign(null, message, secretKey));
}

/** Signs checkpoints with ML-DSA-44, type 0x06. */
export function createMlDsa44Signer(
  name: string,
  provider: CryptoProvider,
  secretKey: SecretKey,
): NoteSigner {
  const key: VerifierKey = {
    name,
    type: "ML-DSA-44 cosignature",
    publicKey: secretKey.publicKey.exportRaw(),
  };
  return createSigner(key, (message) => provider.sign(secretKey, message));
}

/**
 * Signs notes with ML-DSA-65 under a separate context, type 0xff.
 *
 * @param signNote signs under that context
 */
export function createMlDsa65Signer(
  name: string,
  publicKey: Uint8Array,
  signNote: (message: Uint8Array, context: Uint8Array) => Promise<Uint8Array>,
): NoteSigner {
  return createSigner({ name, type: "ML-DSA-65", publicKey }, (message) => signNote(message, ownContext));
}

function createSigner(key: VerifierKey, signRaw: (message: Uint8Array) => Promise<Uint8Array>): NoteSigner {
  const keyId = computeKeyId(key);
  const hasTime = key.type.endsWith("cosignature");
  return {
    key,
    async sign(text, now) {
      const timestamp = BigInt(Math.floor(now.getTime() / 1000));
      const raw = await signRaw(buildSignedMessage(key, text, timestamp));
      const signature = hasTime ? Buffer.concat([encodeUint64(timestamp), raw]) : raw;
      return { keyName: key.name, keyId, signature: Uint8Array.from(signature) };
    },
  };
}

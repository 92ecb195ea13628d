/** Verifies note signatures. */
import { createPublicKey, verify } from "node:crypto";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import type { Note, NoteSignature } from "./note.ts";
import { buildSignedMessage, ownContext } from "./signed-messages.ts";
import { computeKeyId, keyTypes, type VerifierKey } from "./verifier-keys.ts";

/** A verified signature. */
export interface VerifiedSignature extends NoteSignature {
  readonly key: VerifierKey;
  /** Seconds since 1970, as claimed by the signer; undefined for types without a time. */
  readonly timestamp: number | undefined;
}

/**
 * Finds and verifies a key's signature in a note.
 *
 * @returns undefined if the note has none; "invalid" if one does not verify: the note must not be used
 * @throws NoteError if the key belongs to a cosigner and the note is not a checkpoint
 */
export async function verifyNote(
  provider: Pick<CryptoProvider, "importPublicKey" | "verify">,
  { text, signatures }: Note,
  key: VerifierKey,
): Promise<VerifiedSignature | "invalid" | undefined> {
  const keyId = computeKeyId(key);
  const own = signatures.filter((one) => one.keyName === key.name && one.keyId === keyId);
  const [signature] = own;
  if (signature === undefined) return undefined;
  // A second signature by the same key adds nothing and would let a caller drive up the cost.
  if (own.length > 1) return "invalid";
  const { signatureBytes } = keyTypes[key.type];
  if (signature.signature.length !== signatureBytes) return "invalid";
  const hasTime = key.type.endsWith("cosignature");
  const timestamp = hasTime ? Buffer.from(signature.signature).readBigUInt64BE() : 0n;
  // A time that cannot be represented exactly as a number is useless.
  if (timestamp > BigInt(Number.MAX_SAFE_INTEGER)) return "invalid";
  const message = buildSignedMessage(key, text, timestamp);
  const raw = signature.signature.subarray(hasTime ? 8 : 0);
  if (!(await verifyRaw(provider, key, message, raw))) return "invalid";
  return { ...signature, key, timestamp: hasTime ? Number(timestamp) : undefined };
}

async function verifyRaw(
  provider: Pick<CryptoProvider, "importPublicKey" | "verify">,
  { type, publicKey }: VerifierKey,
  message: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  if (type === "Ed25519" || type === "Ed25519 cosignature")
    return verify(null, message, importEd25519(publicKey), signature);
  const algorithm = type === "ML-DSA-65" ? "ML-DSA-65" : "ML-DSA-44";
  const key = provider.importPublicKey(algorithm, { raw: publicKey });
  return provider.verify(key, message, signature, type === "ML-DSA-65" ? { context: ownContext } : {});
}

/** Imports a raw Ed25519 public key (as a JWK, RFC 8037, section 2, which Node can read). */
function importEd25519(raw: Uint8Array) {
  const x = Buffer.from(raw).toString("base64url");
  return createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
}

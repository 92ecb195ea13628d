/**
 * Verifier keys ("vkeys") of c2sp.org/signed-note: `<name>+<ID in hexadecimal>+<base64 of type and public
 * key>`.
 */
import { hash } from "node:crypto";
import { isKeyName, NoteError } from "./note.ts";

/**
 * The signature types.
 *
 * - "Ed25519": type 0x01, over the note's text.
 * - "Ed25519 cosignature": type 0x04, by a witness, with a time.
 * - "ML-DSA-44 cosignature": type 0x06, by a log or a witness, with a time.
 * - "ML-DSA-65": type 0xff with our own name, because the specification has no type for it.
 */
export type NoteKeyType = keyof typeof keyTypes;

interface KeyTypeInfo {
  /** The type, and for 0xff our name for it. */
  readonly prefix: Uint8Array;
  readonly publicKeyBytes: number;
  /** Signature size in bytes, including the eight bytes of a time. */
  readonly signatureBytes: number;
}

/** Ends with a newline, so that no longer name can start with it. */
const ownPrefix = Buffer.concat([Buffer.of(0xff), Buffer.from("quantum-safe-playground/ML-DSA-65\n")]);

/** Facts about each type. */
export const keyTypes = {
  Ed25519: { prefix: Buffer.of(0x01), publicKeyBytes: 32, signatureBytes: 64 },
  "Ed25519 cosignature": { prefix: Buffer.of(0x04), publicKeyBytes: 32, signatureBytes: 8 + 64 },
  "ML-DSA-44 cosignature": { prefix: Buffer.of(0x06), publicKeyBytes: 1312, signatureBytes: 8 + 2420 },
  "ML-DSA-65": { prefix: ownPrefix, publicKeyBytes: 1952, signatureBytes: 3309 },
} as const satisfies Record<string, KeyTypeInfo>;

/** A public key that verifies notes. */
export interface VerifierKey {
  readonly name: string;
  readonly type: NoteKeyType;
  /** Raw bytes. */
  readonly publicKey: Uint8Array;
}

function encodeKey({ type, publicKey }: Omit<VerifierKey, "name">): Buffer {
  return Buffer.concat([keyTypes[type].prefix, publicKey]);
}

/** Computes a key's ID: the first 32 bits of SHA-256(name ‖ newline ‖ type ‖ public key). */
export function computeKeyId(key: VerifierKey): number {
  const digest = hash("sha256", Buffer.concat([Buffer.from(`${key.name}\n`), encodeKey(key)]), "buffer");
  return digest.readUInt32BE();
}

/** Formats a verifier key. */
export function formatVerifierKey(key: VerifierKey): string {
  const id = computeKeyId(key).toString(16).padStart(8, "0");
  return `${key.name}+${id}+${encodeKey(key).toString("base64")}`;
}

/** Maximum length: a name of 255 bytes and an ML-DSA-65 key. */
const maxKeyLength = 4096;

/**
 * Parses a verifier key.
 *
 * @throws NoteError
 */
export function parseVerifierKey(text: string): VerifierKey {
  const match = /^([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+={0,2})$/u.exec(
    text.length > maxKeyLength ? "" : text,
  );
  const [, name = "", id = "", base64 = ""] = match ?? [];
  if (!isKeyName(name))
    throw new NoteError("is not a verifier key: <name>+<8 hexadecimal digits>+<base64 of type and key>");
  const bytes = Buffer.from(base64, "base64");
  for (const type of Object.keys(keyTypes) as NoteKeyType[]) {
    const { prefix, publicKeyBytes } = keyTypes[type];
    const isOfType = bytes.subarray(0, prefix.length).equals(prefix);
    if (!isOfType || bytes.length !== prefix.length + publicKeyBytes) continue;
    const key = { name, type, publicKey: Uint8Array.from(bytes.subarray(prefix.length)) };
    if (computeKeyId(key) !== Number.parseInt(id, 16) || bytes.toString("base64") !== base64)
      throw new NoteError(`is not a verifier key: the ID ${id} does not belong to this name and key`);
    return key;
  }
  const types = Object.keys(keyTypes).join(", ");
  throw new NoteError(`is a verifier key of an unknown type; supported types are ${types}`);
}

/** ML-DSA keys and signatures in TUF metadata (TAP 21). */
import { createHash } from "node:crypto";
import type { MlDsaAlgorithm } from "../../src/crypto/algorithms.ts";
import { encodePublicKeyPem } from "../../src/crypto/key-encoding.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { encodeCanonical, type JsonObject } from "./canonical-json.ts";

/** A public key of a role or of a root signer. */
export interface RoleKey {
  readonly algorithm: MlDsaAlgorithm;
  /** Raw. */
  readonly publicKey: Uint8Array;
}

/** A key as metadata contain it. */
export interface TufKey {
  readonly tufKeyId: string;
  readonly key: JsonObject;
}

/** A signature as metadata contain it. */
export interface TufSignature {
  readonly keyid: string;
  /** Lower-case hexadecimal. */
  readonly sig: string;
}

/** Converts a key to the form in metadata. Its ID is the default of securesystemslib. */
export function toTufKey({ algorithm, publicKey }: RoleKey): TufKey {
  const key = {
    keytype: "ml-dsa",
    // TAP 21, version 1: the message is hashed with SHA-512.
    scheme: `${algorithm.toLowerCase()}/1`,
    keyval: { public: encodePublicKeyPem(algorithm, publicKey) },
  };
  return { tufKeyId: createHash("sha256").update(encodeCanonical(key)).digest("hex"), key };
}

/** Returns the bytes to sign with ML-DSA and an empty context (TAP 21, version 1). */
export function toSignedMessage(signed: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from("tuf\x01", "latin1"), createHash("sha512").update(signed).digest()]);
}

/** Returns whether a key signed the canonical JSON of `signed`. */
export function isSignedBy(
  provider: CryptoProvider,
  { algorithm, publicKey: raw }: RoleKey,
  signed: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  return provider.verify(provider.importPublicKey(algorithm, { raw }), toSignedMessage(signed), signature);
}

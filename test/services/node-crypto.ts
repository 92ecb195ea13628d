/** What node:crypto creates and verifies without the services. */
import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from "node:crypto";

/** Returns SHA-256 as 64 lower-case hexadecimal digits. */
export function sha256(...parts: readonly (Uint8Array | string)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}

/** SubjectPublicKeyInfo of an ML-DSA-65 key, up to the raw key (RFC 9881, section 4). */
const mldsa65Spki = Buffer.from("308207b2300b0609608648016503040312038207a100", "hex");

function mldsa65Key(raw: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.concat([mldsa65Spki, raw]), format: "der", type: "spki" });
}

/**
 * Verifies a signature with only the public key that a service returned.
 *
 * @param publicKey a PEM, or the raw bytes of an ML-DSA-65 key
 */
export function verifiesOutside(
  publicKey: Uint8Array | string,
  data: Uint8Array,
  signature: Uint8Array,
  context: Uint8Array = new Uint8Array(),
): boolean {
  const key = typeof publicKey === "string" ? createPublicKey(publicKey) : mldsa65Key(publicKey);
  return verify(null, data, { key, context }, signature);
}

/** Someone with their own signing key. */
export interface Signer {
  /** Raw. */
  readonly publicKey: Uint8Array<ArrayBuffer>;
  readonly publicKeyPem: string;
  sign(data: Uint8Array, context?: string): Uint8Array<ArrayBuffer>;
}

/** Generates a key pair outside the services: for a device (ML-DSA-44) or a vendor (ML-DSA-87). */
export function makeSigner(algorithm: "ml-dsa-44" | "ml-dsa-65" | "ml-dsa-87"): Signer {
  const { publicKey, privateKey } = generateKeyPairSync(algorithm);
  return {
    publicKey: rawOf(publicKey),
    publicKeyPem: publicKey.export({ format: "pem", type: "spki" }).toString(),
    sign: (data, context = "") =>
      Uint8Array.from(sign(null, data, { key: privateKey, context: Buffer.from(context) })),
  };
}

/** Returns the raw bytes of a public key. */
export function rawOf(publicKey: KeyObject): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(publicKey.export({ format: "raw-public" }));
}

/** Returns the address of a raw public key: "0x" and the first 40 digits of its SHA-256. */
export function addressOf(publicKey: Uint8Array): string {
  return `0x${sha256(publicKey).slice(0, 40)}`;
}

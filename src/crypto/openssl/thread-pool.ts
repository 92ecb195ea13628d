/** The node:crypto functions that run in libuv's thread pool, as promises of plain bytes. */

import type { KeyObject, SignKeyObjectInput, VerifyKeyObjectInput } from "node:crypto";
import * as node from "node:crypto";
import { promisify } from "node:util";
import type { Encapsulation } from "../provider.ts";

/** Digest to pass to node:crypto; null because the post-quantum algorithms do their own hashing. */
type Digest = "sha256" | "sha384" | null;

const signInPool = promisify(node.sign);
const verifyInPool = promisify(node.verify);
const encapsulateInPool = promisify(node.encapsulate);
const decapsulateInPool = promisify(node.decapsulate);
const agreeInPool = promisify(node.diffieHellman);

export async function sign(
  digest: Digest,
  message: Uint8Array,
  key: SignKeyObjectInput,
): Promise<Uint8Array> {
  return plainBytes(await signInPool(digest, message, key));
}

export function verify(
  digest: Digest,
  message: Uint8Array,
  key: VerifyKeyObjectInput,
  signature: Uint8Array,
): Promise<boolean> {
  return verifyInPool(digest, message, key, signature);
}

export async function encapsulate(publicKey: KeyObject): Promise<Encapsulation> {
  const { ciphertext, sharedKey } = await encapsulateInPool(publicKey);
  return { ciphertext: plainBytes(ciphertext), sharedSecret: plainBytes(sharedKey) };
}

export async function decapsulate(secretKey: KeyObject, ciphertext: Uint8Array): Promise<Uint8Array> {
  return plainBytes(await decapsulateInPool(secretKey, ciphertext));
}

/** Computes the shared secret of two keys on one curve. */
export async function agree(privateKey: KeyObject, publicKey: KeyObject): Promise<Uint8Array> {
  return plainBytes(await agreeInPool({ privateKey, publicKey }));
}

/** Returns a plain Uint8Array view; Buffer methods behave differently. */
export function plainBytes(buffer: Buffer): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}

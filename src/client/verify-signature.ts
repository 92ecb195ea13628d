/** Verifies ML-DSA signatures (FIPS 204) without a server, in Node and in browsers. */
import { findMlDsa, type MlDsaName } from "./ml-dsa.ts";
import { requireBytes } from "./require-bytes.ts";

/** A signature, with the key and message to verify it against. */
export interface SignatureInput {
  /** Parameter set. */
  readonly algorithm: MlDsaName;
  /** Raw: 1312, 1952 or 2592 bytes (FIPS 204, table 2). */
  readonly publicKey: Uint8Array;
  /** The message itself, not a digest. */
  readonly message: Uint8Array;
  /** 2420, 3309 or 4627 bytes (FIPS 204, table 2); any other length makes it invalid. */
  readonly signature: Uint8Array;
  /** 0 to 255 bytes that the signature is bound to; empty by default. */
  readonly context?: Uint8Array;
}

/**
 * Verifies a signature (FIPS 204, algorithm 3). Loads the library on first use.
 *
 * A signature of the wrong length is invalid rather than an error: its sender controls the length, and callers should
 * treat it like any other forgery. Any other malformed input is a bug in the caller.
 *
 * @throws TypeError for an unknown algorithm, a public key or context of the wrong length, or a value that is not a
 *   Uint8Array. To verify a text, encode it: `new TextEncoder().encode(text)`.
 */
export async function verifySignature(input: SignatureInput): Promise<boolean> {
  const { algorithm, publicKey, message, signature, context = new Uint8Array() } = input;
  requireBytes({ publicKey, message, signature, context });
  const found = await findMlDsa(algorithm);
  if (found === undefined) throw new TypeError("algorithm must be ML-DSA-44, ML-DSA-65 or ML-DSA-87");
  const { publicKey: keyBytes, signature: signatureBytes } = found.lengths;
  if (publicKey.length !== keyBytes)
    throw new TypeError(`publicKey has ${publicKey.length} bytes; ${algorithm} has ${keyBytes}`);
  if (context.length > 255) throw new TypeError(`context has ${context.length} bytes; the limit is 255`);
  // The library would throw.
  if (signature.length !== signatureBytes) return false;
  return found.verify(signature, message, publicKey, { context });
}

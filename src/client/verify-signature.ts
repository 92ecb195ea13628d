/** Verifies signatures of ML-DSA (FIPS 204) without a server, in Node and browsers. */
import { findMlDsa, type MlDsaName } from "./ml-dsa.ts";

/** A signature, and the key and message to check it with. */
export interface SignatureInput {
  /** The parameter set, as the server names it. */
  readonly algorithm: MlDsaName;
  /** Raw: 1312, 1952 or 2592 bytes (FIPS 204, table 2). */
  readonly publicKey: Uint8Array;
  /** The message itself, not a digest. */
  readonly message: Uint8Array;
  /** 2420, 3309 or 4627 bytes (FIPS 204, table 2); with another length it is not valid. */
  readonly signature: Uint8Array;
  /** 0 to 255 bytes that the signer bound the signature to; empty by default. */
  readonly context?: Uint8Array;
}

/**
 * Tells whether a signature is valid (FIPS 204, algorithm 3). Loads the library at the first use.
 *
 * A signature of a wrong length is not valid: its sender chooses the length, and a program treats it as any other
 * forgery. Everything else of a wrong form is a mistake of the program.
 *
 * @throws TypeError for an unknown algorithm, a public key or context of a wrong length, or a value that is not
 *   a Uint8Array. For a text, encode it: `new TextEncoder().encode(text)`.
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
  // The library throws for it.
  if (signature.length !== signatureBytes) return false;
  return found.verify(signature, message, publicKey, { context });
}

/** A program without types may pass a text, which cannot be signed. @throws TypeError that names the value */
function requireBytes(values: Readonly<Record<string, unknown>>): void {
  // The bytes of another frame, or of a test environment, have another constructor.
  for (const [name, value] of Object.entries(values))
    if (Object.prototype.toString.call(value) !== "[object Uint8Array]")
      throw new TypeError(`${name} must be a Uint8Array, not ${nameType(value)}`);
}

function nameType(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return typeof value === "string"
    ? "a text; encode it, or decode its base64"
    : `a value of type ${typeof value}`;
}

/**
 * Composite signatures id-MLDSA65-ECDSA-P256-SHA512, 1.3.6.1.5.5.7.6.45
 * (draft-ietf-lamps-pq-composite-sigs-19): one signature that is valid only if both halves are.
 *
 * Pitfall: the ECDSA half is malleable, so a composite signature is unforgeable but not unique (EUF-CMA,
 * section 9). Never use its bytes as an identifier. Never sign with one half's key alone (section 9.3).
 */
import { createHash } from "node:crypto";
import { signatureAlgorithms } from "./algorithms.ts";
import { invalidArgument, invalidKey } from "./crypto-error.ts";
import { element, matchShape, objectIdentifier, renderShape, tag } from "./der.ts";
import { decodePem, encodePem } from "./pem.ts";
import type { CryptoProvider, KeyPair, PublicKey, SecretKey } from "./provider.ts";

const mldsa = "ML-DSA-65";
const ecdsa = "ECDSA-P256";
const encoder = new TextEncoder();
/** Section 3.2: the prefix of every message that a composite key signs. */
const prefix = encoder.encode("CompositeAlgorithmSignatures2025");
/** Section 6: binds the algorithm into the signed message. */
const label = encoder.encode("COMPSIG-MLDSA65-ECDSA-P256-SHA512");

const { publicKeyBytes: mldsaKeyBytes, signatureBytes: mldsaSignatureBytes } = signatureAlgorithms[mldsa];
const { publicKeyBytes: pointBytes } = signatureAlgorithms[ecdsa];

/** Length of a composite public key, in bytes: the ML-DSA key and an uncompressed point. */
const compositeKeyBytes = mldsaKeyBytes + pointBytes;
/** Length of the shortest signature with a complete ML-DSA half, in bytes; DER varies in length. */
export const shortestCompositeBytes = mldsaSignatureBytes + 1;

/** Section 5.1 and RFC 5280, section 4.1.2.7: no algorithm parameters; the BIT STRING holds the raw key. */
const subjectPublicKeyInfo = element(
  tag.sequence,
  ...element(tag.sequence, ...objectIdentifier("1.3.6.1.5.5.7.6.45")),
  ...element(tag.bitString, Uint8Array.of(0), { slot: "publicKey", length: compositeKeyBytes }),
);

interface Halves<Key> {
  readonly mldsa: Key;
  readonly ecdsa: Key;
}

export interface CompositeKeyPair {
  readonly publicKey: Halves<PublicKey>;
  readonly secretKey: Halves<SecretKey>;
}

/** The result for each half. The composite signature is valid only if both are. */
export interface CompositeVerification {
  readonly mldsaValid: boolean;
  readonly ecdsaValid: boolean;
}

/** The algorithms of the two halves, ML-DSA first. */
export const compositeAlgorithms = [mldsa, ecdsa] as const;

/** Combines two new key pairs, which must not be used for anything else. */
export function joinKeyPairs(first: KeyPair, second: KeyPair): CompositeKeyPair {
  return {
    publicKey: { mldsa: first.publicKey, ecdsa: second.publicKey },
    secretKey: { mldsa: first.secretKey, ecdsa: second.secretKey },
  };
}

/** Section 4.1: the ML-DSA public key followed by the uncompressed point; `compositeKeyBytes` long. */
export function exportCompositePublicKey({ publicKey }: Pick<CompositeKeyPair, "publicKey">): Uint8Array {
  return Buffer.concat([publicKey.mldsa.exportRaw(), publicKey.ecdsa.exportRaw()]);
}

/**
 * Encodes a raw composite public key as SubjectPublicKeyInfo in PEM (section 5.1).
 *
 * @param publicKey `compositeKeyBytes` long
 * @throws RangeError for any other length
 */
export function encodeCompositePublicKeyPem(publicKey: Uint8Array): string {
  return encodePem("PUBLIC KEY", renderShape(subjectPublicKeyInfo, { publicKey }));
}

/**
 * Imports a composite public key from SubjectPublicKeyInfo in PEM, in strict DER.
 *
 * @throws INVALID_KEY
 */
export function importCompositePublicKeyPem(
  provider: CryptoProvider,
  pem: string,
): CompositeKeyPair["publicKey"] {
  const der = decodePem("PUBLIC KEY", pem);
  const publicKey = matchShape(subjectPublicKeyInfo, der)?.publicKey;
  if (publicKey !== undefined) return importCompositePublicKey(provider, publicKey);
  const expected = "the SubjectPublicKeyInfo of id-MLDSA65-ECDSA-P256-SHA512 in strict DER";
  throw invalidKey(`the PEM block is not ${expected} (${der.length} bytes)`);
}

/**
 * Imports a raw composite public key.
 *
 * @throws INVALID_KEY
 */
export function importCompositePublicKey(
  provider: CryptoProvider,
  raw: Uint8Array,
): CompositeKeyPair["publicKey"] {
  if (raw.length !== compositeKeyBytes) {
    throw invalidKey(`a composite public key has ${compositeKeyBytes} bytes, not ${raw.length}`);
  }
  return {
    mldsa: provider.importPublicKey(mldsa, { raw: raw.subarray(0, mldsaKeyBytes) }),
    ecdsa: provider.importPublicKey(ecdsa, { raw: raw.subarray(mldsaKeyBytes) }),
  };
}

/**
 * Signs (section 3.2).
 *
 * @param context 0 to 255 bytes
 * @returns the ML-DSA signature followed by the ECDSA signature in DER
 */
export async function signComposite(
  provider: CryptoProvider,
  { secretKey }: Pick<CompositeKeyPair, "secretKey">,
  message: Uint8Array,
  context: Uint8Array = new Uint8Array(),
): Promise<Uint8Array> {
  const representative = representMessage(message, context);
  const halves = await Promise.all([
    provider.sign(secretKey.mldsa, representative, { context: label }),
    provider.sign(secretKey.ecdsa, representative),
  ]);
  return Buffer.concat(halves);
}

/**
 * Verifies (section 3.3) and reports each half separately. If the signature is too short, neither half is
 * valid.
 */
export async function verifyComposite(
  provider: CryptoProvider,
  publicKey: CompositeKeyPair["publicKey"],
  message: Uint8Array,
  signature: Uint8Array,
  context: Uint8Array = new Uint8Array(),
): Promise<CompositeVerification> {
  if (signature.length < shortestCompositeBytes) return { mldsaValid: false, ecdsaValid: false };
  const representative = representMessage(message, context);
  const [mldsaValid, ecdsaValid] = await Promise.all([
    provider.verify(publicKey.mldsa, representative, signature.subarray(0, mldsaSignatureBytes), {
      context: label,
    }),
    provider.verify(publicKey.ecdsa, representative, signature.subarray(mldsaSignatureBytes)),
  ]);
  return { mldsaValid, ecdsaValid };
}

/** Section 3.2, step 2: M' = Prefix ‖ Label ‖ len(ctx) ‖ ctx ‖ PH(M), with SHA-512. */
export function representMessage(message: Uint8Array, context: Uint8Array): Uint8Array {
  if (context.length > 255) throw invalidArgument(`context is ${context.length} bytes; the limit is 255`);
  const digest = createHash("sha512").update(message).digest();
  return Buffer.concat([prefix, label, Uint8Array.of(context.length), context, digest]);
}

/**
 * HPKE in base mode (RFC 9180, section 5.1.1), single shot, with the KEMs of draft-ietf-hpke-pq-04, HKDF-SHA256 and
 * AES-256-GCM. The provider does the work of the KEM, off the event loop and charged to its caller.
 *
 * Base mode does not authenticate the sender: whoever has the public key can seal.
 */
import { type Algorithm, kemAlgorithms } from "./algorithms.ts";
import { copyBytes, wipe } from "./bytes.ts";
import { checkBytes } from "./checks.ts";
import { invalidArgument } from "./crypto-error.ts";
import { withFreshKeyPair } from "./fresh-key-pair.ts";
import { type HpkeContext, openMessage, sealMessage, tagBytes } from "./hpke-suite.ts";
import type { CryptoProvider, PublicKey, SecretKey } from "./provider.ts";

/** The KEMs of HPKE, with their identifiers (draft-ietf-hpke-pq-04, section 8). */
export const kemIds = { "X-Wing": 0x647a, "ML-KEM-768": 0x0041, "ML-KEM-1024": 0x0042 } as const;

/** A KEM that HPKE has. */
export type HpkeAlgorithm = keyof typeof kemIds;

/** The ways to wrap a key, named after their KEM, KDF and AEAD. */
const methodAlgorithms = {
  HPKE_XWING_HKDF_SHA256_AES_256_GCM: "X-Wing",
  HPKE_ML_KEM_768_HKDF_SHA256_AES_256_GCM: "ML-KEM-768",
  HPKE_ML_KEM_1024_HKDF_SHA256_AES_256_GCM: "ML-KEM-1024",
} as const satisfies Record<string, HpkeAlgorithm>;

export type WrappingMethod = keyof typeof methodAlgorithms;

export const wrappingMethods = Object.keys(methodAlgorithms) as readonly WrappingMethod[];

/** Maximum size of a wrapped key file in bytes: more than PKCS#8 in PEM of any key has. */
export const maxPlaintextBytes = 16_384;
/** Maximum size of `info` and of `aad` in bytes. */
const maxContextBytes = 65_536;

/** The inputs that both sides must use alike; empty if left out. */
export interface SealContext {
  /** Binds the key schedule to one use (RFC 9180, section 5.1); at most 65,536 bytes. */
  readonly info?: Uint8Array | undefined;
  /** Is authenticated with the plaintext (RFC 9180, section 5.2); at most 65,536 bytes. */
  readonly aad?: Uint8Array | undefined;
}

/** A key pair to wrap to. */
export interface WrappingKey {
  /** Raw: 1216 bytes (X-Wing), 1184 (ML-KEM-768) or 1568 (ML-KEM-1024). */
  readonly publicKey: Uint8Array;
  /** The private key as draft-ietf-hpke-pq-04 serializes it: 32 bytes (X-Wing) or 64. The caller wipes it. */
  readonly seed: Uint8Array;
}

/** Whether HPKE has a KEM: all but ML-KEM-512. */
export function isHpkeAlgorithm(name: string): name is HpkeAlgorithm {
  return Object.hasOwn(kemIds, name);
}

/** Whether a name is one of `wrappingMethods`; names are case-sensitive. */
export function isWrappingMethod(name: string): name is WrappingMethod {
  return Object.hasOwn(methodAlgorithms, name);
}

/** Minimum length in bytes of what `seal` returns for a KEM: enc and the tag. */
export function minSealedBytes(algorithm: Algorithm): number {
  return kemAlgorithms[requireKem(algorithm)].ciphertextBytes + tagBytes;
}

/**
 * Seals a message: SealBase of RFC 9180, section 6.1.
 *
 * @param publicKey of a KEM that HPKE has.
 * @returns enc ‖ ciphertext: 1136 (X-Wing), 1104 (ML-KEM-768) or 1584 bytes (ML-KEM-1024) longer than the plaintext.
 * @throws INVALID_ARGUMENT
 */
export async function seal(
  provider: CryptoProvider,
  publicKey: PublicKey,
  plaintext: Uint8Array,
  context: SealContext = {},
): Promise<Uint8Array> {
  const kemId = kemIds[requireKem(publicKey.algorithm)];
  const inputs = copyContext(context);
  checkBytes("the plaintext", plaintext);
  // A copy, because the KEM takes several turns of the event loop.
  const message = copyBytes(plaintext);
  let sharedSecret: Uint8Array | undefined;
  try {
    const encapsulation = await provider.encapsulate(publicKey);
    ({ sharedSecret } = encapsulation);
    const sealed = sealMessage({ kemId, sharedSecret }, message, inputs);
    return new Uint8Array(Buffer.concat([encapsulation.ciphertext, sealed]));
  } finally {
    wipe(message, sharedSecret);
  }
}

/**
 * Opens what `seal` or another implementation of HPKE sealed: OpenBase of RFC 9180, section 6.1.
 *
 * @param sealed enc ‖ ciphertext, at least `minSealedBytes` of its KEM.
 * @returns the plaintext. The caller wipes it.
 * @throws UNWRAP_FAILED for any changed bit, a different key, `info` or `aad`, without distinction; INVALID_ARGUMENT for
 *   an impossible length
 */
export async function open(
  provider: CryptoProvider,
  secretKey: SecretKey,
  sealed: Uint8Array,
  context: SealContext = {},
): Promise<Uint8Array> {
  const algorithm = requireKem(secretKey.algorithm);
  const inputs = copyContext(context);
  checkSize("the ciphertext", sealed, minSealedBytes(algorithm), Number.POSITIVE_INFINITY);
  const { ciphertextBytes: encBytes } = kemAlgorithms[algorithm];
  const [enc, ciphertext] = [copyBytes(sealed.subarray(0, encBytes)), copyBytes(sealed.subarray(encBytes))];
  const sharedSecret = await provider.decapsulate(secretKey, enc);
  try {
    return openMessage({ kemId: kemIds[algorithm], sharedSecret }, ciphertext, inputs);
  } finally {
    wipe(sharedSecret);
  }
}

/** Generates a key pair to wrap to. The caller wipes the seed. */
export function generateWrappingKey(provider: CryptoProvider, method: WrappingMethod): Promise<WrappingKey> {
  const algorithm = findAlgorithm(method);
  return withFreshKeyPair(provider, algorithm, async ({ publicKey, secretKey }) => {
    const seed = secretKey.exportSeed();
    if (seed === undefined) throw new Error(`a new ${algorithm} key has no seed`);
    return { publicKey: publicKey.exportRaw(), seed };
  });
}

/**
 * Wraps a secret key for transport.
 *
 * @param publicKey raw, of the receiver.
 * @param plaintext 0 to 16,384 bytes.
 * @returns what `seal` returns
 * @throws INVALID_KEY for a malformed public key; INVALID_ARGUMENT
 */
export async function wrap(
  provider: CryptoProvider,
  method: WrappingMethod,
  publicKey: Uint8Array,
  plaintext: Uint8Array,
  context: SealContext = {},
): Promise<Uint8Array> {
  const algorithm = findAlgorithm(method);
  checkSize("the plaintext", plaintext, 0, maxPlaintextBytes);
  return seal(provider, provider.importPublicKey(algorithm, { raw: publicKey }), plaintext, context);
}

/**
 * Unwraps a secret key.
 *
 * @param seed the private key, 32 (X-Wing) or 64 bytes.
 * @param wrapped enc ‖ ciphertext.
 * @returns the plaintext, 0 to 16,384 bytes. The caller wipes it.
 * @throws as `open` does; INVALID_KEY for a seed of the wrong length
 */
export async function unwrap(
  provider: CryptoProvider,
  method: WrappingMethod,
  seed: Uint8Array,
  wrapped: Uint8Array,
  context: SealContext = {},
): Promise<Uint8Array> {
  const algorithm = findAlgorithm(method);
  const minBytes = minSealedBytes(algorithm);
  checkSize("the wrapped key", wrapped, minBytes, minBytes + maxPlaintextBytes);
  const secretKey = await provider.importSecretKey(algorithm, { seed });
  try {
    return await open(provider, secretKey, wrapped, context);
  } finally {
    secretKey.erase();
  }
}

function requireKem(algorithm: Algorithm): HpkeAlgorithm {
  if (isHpkeAlgorithm(algorithm)) return algorithm;
  throw invalidArgument(`HPKE has no KEM ${algorithm}; use ${Object.keys(kemIds).join(", ")}`);
}

function findAlgorithm(method: WrappingMethod): HpkeAlgorithm {
  if (isWrappingMethod(method)) return methodAlgorithms[method];
  throw invalidArgument(
    `unknown wrapping method ${String(method)}; use one of ${wrappingMethods.join(", ")}`,
  );
}

function copyContext({ info = new Uint8Array(), aad = new Uint8Array() }: SealContext): HpkeContext {
  checkSize("info", info, 0, maxContextBytes);
  checkSize("aad", aad, 0, maxContextBytes);
  return { info: copyBytes(info), aad: copyBytes(aad) };
}

function checkSize(name: string, value: Uint8Array, minBytes: number, maxBytes: number): void {
  checkBytes(name, value);
  if (value.length >= minBytes && value.length <= maxBytes) return;
  throw invalidArgument(`${name} must have ${minBytes} to ${maxBytes} bytes, not ${value.length}`);
}

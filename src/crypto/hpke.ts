/**
 * Wraps secret keys for transport with HPKE in base mode (RFC 9180, section 5.1.1) and the KEMs of draft-ietf-hpke-pq-04.
 * The KDF is HKDF-SHA256, the AEAD is AES-256-GCM. The provider does the work of the KEM, off the event loop and charged to
 * its caller.
 */
import { type KemAlgorithm, kemAlgorithms } from "./algorithms.ts";
import { copyBytes, wipe } from "./bytes.ts";
import { checkBytes } from "./checks.ts";
import { invalidArgument } from "./crypto-error.ts";
import { withFreshKeyPair } from "./fresh-key-pair.ts";
import { type HpkeContext, type HpkeKem, openMessage, sealMessage, tagBytes } from "./hpke-suite.ts";
import type { CryptoProvider } from "./provider.ts";

/** The ways to wrap a key, named after their KEM, KDF and AEAD. */
export const wrappingMethods = [
  "HPKE_XWING_HKDF_SHA256_AES_256_GCM",
  "HPKE_ML_KEM_768_HKDF_SHA256_AES_256_GCM",
  "HPKE_ML_KEM_1024_HKDF_SHA256_AES_256_GCM",
] as const;

export type WrappingMethod = (typeof wrappingMethods)[number];

/** The KEM of each method, with its identifier (draft-ietf-hpke-pq-04, section 8). */
const kems = {
  HPKE_XWING_HKDF_SHA256_AES_256_GCM: { algorithm: "X-Wing", id: 0x647a },
  HPKE_ML_KEM_768_HKDF_SHA256_AES_256_GCM: { algorithm: "ML-KEM-768", id: 0x0041 },
  HPKE_ML_KEM_1024_HKDF_SHA256_AES_256_GCM: { algorithm: "ML-KEM-1024", id: 0x0042 },
} as const satisfies Record<WrappingMethod, HpkeKem>;

/** The most bytes that are wrapped: more than PKCS#8 in PEM of any key has. */
export const maxPlaintextBytes = 16_384;
/** The most bytes of `info` and of `aad` each. */
const maxContextBytes = 65_535;

/** The inputs that both sides must use alike; empty if left out. */
export interface WrapContext {
  /** Binds the key schedule to one use (RFC 9180, section 5.1); at most 65,535 bytes. */
  readonly info?: Uint8Array | undefined;
  /** Is authenticated with the plaintext (RFC 9180, section 5.2); at most 65,535 bytes. */
  readonly aad?: Uint8Array | undefined;
}

/** A key pair to wrap to. */
export interface WrappingKey {
  /** Raw: 1216 bytes (X-Wing), 1184 (ML-KEM-768) or 1568 (ML-KEM-1024). */
  readonly publicKey: Uint8Array;
  /** The private key as draft-ietf-hpke-pq-04 serializes it: 32 bytes (X-Wing) or 64. The caller wipes it. */
  readonly seed: Uint8Array;
}

/** Tells whether a name is that of a wrapping method; names are case-sensitive. */
export function isWrappingMethod(name: string): name is WrappingMethod {
  return Object.hasOwn(kems, name);
}

/** Generates a key pair to wrap to. The caller wipes the seed. */
export function generateWrappingKey(provider: CryptoProvider, method: WrappingMethod): Promise<WrappingKey> {
  const { algorithm } = findKem(method);
  return withFreshKeyPair(provider, algorithm, async ({ publicKey, secretKey }) => {
    const seed = secretKey.exportSeed();
    if (seed === undefined) throw new Error(`a new ${algorithm} key has no seed`);
    return { publicKey: publicKey.exportRaw(), seed };
  });
}

/**
 * Wraps a secret: SealBase of RFC 9180, section 6.1.
 *
 * @param publicKey raw, of the receiver.
 * @param plaintext 0 to 16,384 bytes.
 * @returns enc ‖ ciphertext: 1136 (X-Wing), 1104 (ML-KEM-768) or 1584 bytes (ML-KEM-1024) longer than the plaintext.
 * @throws INVALID_KEY for a malformed public key; INVALID_ARGUMENT
 */
export async function wrap(
  provider: CryptoProvider,
  method: WrappingMethod,
  publicKey: Uint8Array,
  plaintext: Uint8Array,
  context: WrapContext = {},
): Promise<Uint8Array> {
  const kem = findKem(method);
  const options = copyContext(context);
  checkSize("the plaintext", plaintext, 0, maxPlaintextBytes);
  const receiver = provider.importPublicKey(kem.algorithm, { raw: publicKey });
  // A copy, because the work below takes several turns of the event loop.
  const secret = copyBytes(plaintext);
  let sharedSecret: Uint8Array | undefined;
  try {
    const encapsulation = await provider.encapsulate(receiver);
    ({ sharedSecret } = encapsulation);
    const { ciphertext: enc } = encapsulation;
    const ciphertext = await sealMessage(kem, { enc, sharedSecret }, secret, options);
    return new Uint8Array(Buffer.concat([enc, ciphertext]));
  } finally {
    wipe(secret, sharedSecret);
  }
}

/**
 * Opens what `wrap` or another implementation of HPKE wrapped: OpenBase of RFC 9180, section 6.1.
 *
 * @param seed the private key, 32 (X-Wing) or 64 bytes.
 * @param wrapped enc ‖ ciphertext.
 * @returns the plaintext, 0 to 16,384 bytes. The caller wipes it.
 * @throws UNWRAP_FAILED for any change of a bit, another key, `info` or `aad`, without distinction; INVALID_ARGUMENT for
 *   an impossible length; INVALID_KEY for a seed of the wrong length
 */
export async function unwrap(
  provider: CryptoProvider,
  method: WrappingMethod,
  seed: Uint8Array,
  wrapped: Uint8Array,
  context: WrapContext = {},
): Promise<Uint8Array> {
  const kem = findKem(method);
  const options = copyContext(context);
  const { ciphertextBytes: encBytes } = kemAlgorithms[kem.algorithm];
  const leastBytes = encBytes + tagBytes;
  checkSize("the wrapped key", wrapped, leastBytes, leastBytes + maxPlaintextBytes);
  const [enc, ciphertext] = [copyBytes(wrapped.subarray(0, encBytes)), copyBytes(wrapped.subarray(encBytes))];
  const sharedSecret = await decapsulate(provider, kem.algorithm, seed, enc);
  try {
    return await openMessage(kem, { enc, sharedSecret }, ciphertext, options);
  } finally {
    wipe(sharedSecret);
  }
}

async function decapsulate(
  provider: CryptoProvider,
  algorithm: KemAlgorithm,
  seed: Uint8Array,
  enc: Uint8Array,
): Promise<Uint8Array> {
  const secretKey = await provider.importSecretKey(algorithm, { seed });
  try {
    return await provider.decapsulate(secretKey, enc);
  } finally {
    secretKey.erase();
  }
}

function findKem(method: WrappingMethod): (typeof kems)[WrappingMethod] {
  if (isWrappingMethod(method)) return kems[method];
  const known = wrappingMethods.join(", ");
  throw invalidArgument(`unknown wrapping method ${String(method)}; known: ${known}`);
}

function copyContext({ info = new Uint8Array(), aad = new Uint8Array() }: WrapContext): HpkeContext {
  checkSize("info", info, 0, maxContextBytes);
  checkSize("aad", aad, 0, maxContextBytes);
  return { info: copyBytes(info), aad: copyBytes(aad) };
}

function checkSize(name: string, value: Uint8Array, leastBytes: number, mostBytes: number): void {
  checkBytes(name, value);
  if (value.length >= leastBytes && value.length <= mostBytes) return;
  throw invalidArgument(`${name} must have ${leastBytes} to ${mostBytes} bytes, not ${value.length}`);
}

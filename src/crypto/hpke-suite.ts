/**
 * The part of HPKE after its KEM: the key schedule of RFC 9180, section 5.1, in base mode with HKDF-SHA256, and AES-256-GCM
 * (section 5.2). The package hpke does it with the Web Crypto API of Node.
 */
import { AEAD_AES_256_GCM, CipherSuite, KDF_HKDF_SHA256, type KEM, type Key, OpenError } from "hpke";
import { type KemAlgorithm, kemAlgorithms } from "./algorithms.ts";
import { CryptoError } from "./crypto-error.ts";

/** A KEM of HPKE. */
export interface HpkeKem {
  readonly algorithm: KemAlgorithm;
  /** Its identifier in the registry "HPKE KEM Identifiers". */
  readonly id: number;
}

/** The result of an encapsulation. */
export interface KemResult {
  readonly enc: Uint8Array;
  readonly sharedSecret: Uint8Array;
}

/** The inputs that both sides know. */
export interface HpkeContext {
  readonly info: Uint8Array;
  readonly aad: Uint8Array;
}

/** Bytes of the tag of AES-256-GCM (RFC 9180, section 7.3). */
export const tagBytes = 16;

/** Encrypts one message. @returns the ciphertext, `tagBytes` longer than the plaintext */
export async function sealMessage(
  kem: HpkeKem,
  encapsulated: KemResult,
  plaintext: Uint8Array,
  context: HpkeContext,
): Promise<Uint8Array> {
  const suite = createSuite(kem, encapsulated);
  const { ciphertext } = await suite.Seal(asKey(kem, "public"), plaintext, context);
  return ciphertext;
}

/** Decrypts one message. @throws UNWRAP_FAILED */
export async function openMessage(
  kem: HpkeKem,
  encapsulated: KemResult,
  ciphertext: Uint8Array,
  context: HpkeContext,
): Promise<Uint8Array> {
  try {
    const suite = createSuite(kem, encapsulated);
    return await suite.Open(asKey(kem, "private"), encapsulated.enc, ciphertext, context);
  } catch (error) {
    if (!(error instanceof OpenError)) throw error;
    const cause = "it was changed, or wrapped to another key or with other info or aad";
    throw new CryptoError("UNWRAP_FAILED", `the wrapped key does not open: ${cause}`);
  }
}

/** The suite for one message, whose KEM has already done its work. */
function createSuite({ algorithm, id }: HpkeKem, { enc, sharedSecret }: KemResult): CipherSuite<Key> {
  const { publicKeyBytes, ciphertextBytes, sharedSecretBytes, seedBytes = 0 } = kemAlgorithms[algorithm];
  const refuse = (): never => {
    throw new Error("HPKE in base mode asks a KEM for nothing but a secret");
  };
  const kem: KEM<Key> = {
    id,
    type: "KEM",
    name: algorithm,
    Nsecret: sharedSecretBytes,
    Nenc: ciphertextBytes,
    Npk: publicKeyBytes,
    Nsk: seedBytes,
    Encap: async () => ({ shared_secret: sharedSecret, enc }),
    Decap: async () => sharedSecret,
    DeriveKeyPair: refuse,
    GenerateKeyPair: refuse,
    SerializePublicKey: refuse,
    DeserializePublicKey: refuse,
    SerializePrivateKey: refuse,
    DeserializePrivateKey: refuse,
  };
  return new CipherSuite(() => kem, KDF_HKDF_SHA256, AEAD_AES_256_GCM);
}

/** The package wants a key, and hands it to the KEM, which does not need it. */
function asKey({ algorithm }: HpkeKem, type: "public" | "private"): Key {
  return { algorithm: { name: algorithm }, extractable: false, type };
}

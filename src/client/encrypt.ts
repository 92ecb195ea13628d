/** Encrypts data under a key of the key service without the server, in Node and browsers. */
import { headBytes, writeHead, writeInfo } from "../crypto/encryption-head.ts";
import { requireBytes } from "./require-bytes.ts";

/** Data, and the key to encrypt it under. */
export interface EncryptionInput {
  /** "key-" and a UUID. */
  readonly keyId: string;
  /** Algorithm of the key, as the server names it. */
  readonly algorithm: EncryptionAlgorithm;
  /** Raw: 1216 bytes for X-Wing, 1184 for ML-KEM-768, 1568 for ML-KEM-1024. */
  readonly publicKey: Uint8Array;
  /** 0 to 65,536 bytes, as many as the server decrypts. */
  readonly plaintext: Uint8Array;
  /** Data that the ciphertext is bound to, 0 to 65,536 bytes; empty by default. Decryption needs the same. */
  readonly associatedData?: Uint8Array | undefined;
}

/** The algorithms of keys that encrypt. */
export type EncryptionAlgorithm = keyof typeof kemIds;

/** Identifiers of the KEMs in HPKE: draft-ietf-hpke-pq-04, section 8. */
const kemIds = { "X-Wing": 0x647a, "ML-KEM-768": 0x0041, "ML-KEM-1024": 0x0042 } as const;

const maxBytes = 65_536;

/**
 * Encrypts data as `Encrypt` of the key service does: only the server can decrypt it. The ciphertext does
 * not prove who encrypted it, because anyone with the public key can. Loads its libraries at the first use. In
 * browsers it needs a secure context (https, or localhost).
 *
 * @returns the ciphertext: 1153 bytes longer than the plaintext for X-Wing, 1121 for ML-KEM-768, 1601 for ML-KEM-1024
 * @throws TypeError for an unknown algorithm, a key ID or public key of the wrong form, data that is too long, or a value
 *   that is not a Uint8Array
 */
export async function encryptForKey(input: EncryptionInput): Promise<Uint8Array<ArrayBuffer>> {
  const { keyId, algorithm, publicKey, plaintext, associatedData = new Uint8Array() } = input;
  requireBytes({ publicKey, plaintext, associatedData });
  if (!Object.hasOwn(kemIds, algorithm))
    throw new TypeError(`algorithm must be ${Object.keys(kemIds).join(", ")}, not "${algorithm}"`);
  const kem = await loadKem(algorithm);
  const { publicKey: publicKeyBytes } = kem.lengths;
  if (publicKey.length !== publicKeyBytes)
    throw new TypeError(`publicKey has ${publicKey.length} bytes; ${algorithm} has ${publicKeyBytes}`);
  for (const [name, { length }] of Object.entries({ plaintext, associatedData }))
    if (length > maxBytes) throw new TypeError(`${name} has ${length} bytes; the limit is ${maxBytes}`);
  const head = writeHead(keyId);
  const encapsulation = encapsulateTo(kem, publicKey);
  const suite = await createSuite(algorithm, kem, encapsulation);
  const key = { algorithm: { name: algorithm }, extractable: false, type: "public" } as const;
  const context = { info: writeInfo(head), aad: associatedData };
  const { encapsulatedSecret, ciphertext } = await suite.Seal(key, plaintext, context);
  const whole = new Uint8Array(headBytes + encapsulatedSecret.length + ciphertext.length);
  whole.set(head);
  whole.set(encapsulatedSecret, headBytes);
  whole.set(ciphertext, headBytes + encapsulatedSecret.length);
  return whole;
}

/** @throws TypeError for bytes of the right length that are not a key (FIPS 203, section 7.2: modulus check) */
function encapsulateTo(kem: Kem, publicKey: Uint8Array) {
  try {
    return kem.encapsulate(publicKey);
  } catch (cause) {
    throw new TypeError("publicKey is not a key of the algorithm", { cause });
  }
}

/** HPKE for one message. The KEM comes from noble, because browsers have no X-Wing yet. */
async function createSuite(
  algorithm: EncryptionAlgorithm,
  kem: Kem,
  { cipherText: enc, sharedSecret: shared_secret }: ReturnType<Kem["encapsulate"]>,
) {
  const { AEAD_AES_256_GCM, CipherSuite, KDF_HKDF_SHA256 } = await import("hpke");
  const { cipherText: Nenc = 0, publicKey: Npk = 0, seed: Nsk = 0 } = kem.lengths;
  const refuse = (): never => {
    throw new Error("HPKE in base mode needs only Encap to seal");
  };
  return new CipherSuite(
    () => ({
      id: kemIds[algorithm],
      type: "KEM",
      name: algorithm,
      Nsecret: 32,
      ...{ Nenc, Npk, Nsk },
      Encap: async () => ({ enc, shared_secret }),
      Decap: refuse,
      DeriveKeyPair: refuse,
      GenerateKeyPair: refuse,
      SerializePublicKey: refuse,
      DeserializePublicKey: refuse,
      SerializePrivateKey: refuse,
      DeserializePrivateKey: refuse,
    }),
    KDF_HKDF_SHA256,
    AEAD_AES_256_GCM,
  );
}

type Kem = Awaited<ReturnType<typeof loadKem>>;

async function loadKem(algorithm: EncryptionAlgorithm) {
  if (algorithm === "X-Wing") return (await import("@noble/post-quantum/hybrid.js")).ml_kem768_x25519;
  const { ml_kem768, ml_kem1024 } = await import("@noble/post-quantum/ml-kem.js");
  return algorithm === "ML-KEM-768" ? ml_kem768 : ml_kem1024;
}

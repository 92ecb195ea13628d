import {
  type Algorithm,
  algorithms,
  type CompositeAlgorithm,
  isCompositeAlgorithm,
  isKemAlgorithm,
  isMlDsaAlgorithm,
  isMlKemAlgorithm,
  isSignatureAlgorithm,
  isSignatureLength,
  kemAlgorithms,
  type MlDsaAlgorithm,
} from "./algorithms.ts";
import { equalBytes, wipe } from "./bytes.ts";
import { checkAlgorithm, checkBytes, checkLength, checkMaterial, checkSignatureOptions } from "./checks.ts";
import { isRepresentative, startRepresentative } from "./composite.ts";
import { addComposites } from "./composite-engine.ts";
import { CryptoError, invalidArgument, invalidKey } from "./crypto-error.ts";
import { checkPointForm, checkScalar } from "./ecdsa.ts";
import type { Engine, IncrementalHash, LibraryPublicKey, LibrarySecretKey, SecretKeyForm } from "./engine.ts";
import { decodePublicKeyPem, decodeSecretKeyDer, decodeSecretKeyPem } from "./key-encoding.ts";
import { EnginePublicKey, EngineSecretKey } from "./keys.ts";
import { muBytes, startMu } from "./ml-dsa.ts";
import { checkDecapsulationKey, checkEncapsulationKey } from "./ml-kem.ts";
import type {
  CryptoProvider,
  Encapsulation,
  KeyPair,
  ProviderName,
  PublicKey,
  PublicKeyMaterial,
  RepresentativeHash,
  SecretKey,
  SecretKeyMaterial,
  SignatureOptions,
} from "./provider.ts";

/** The first half of an X-Wing key. */
const mlKem768 = kemAlgorithms["ML-KEM-768"];

/**
 * Turns an engine into a provider. All input rules of `CryptoProvider` are implemented here, so that engines
 * cannot differ in how they treat bad input.
 */
export class CheckedProvider implements CryptoProvider {
  readonly name: ProviderName;
  readonly version: string;
  readonly cpuPath: string | undefined;
  /** This provider has no queue and is never busy, so all its variants are the same. */
  readonly unbounded = this;
  readonly system = this;
  readonly shared = this;
  readonly #engine: Engine<Algorithm>;
  /** Keys that this provider created. It rejects keys from other providers, even of the same class. */
  readonly #publicKeys = new WeakMap<PublicKey, LibraryPublicKey>();
  readonly #secretKeys = new WeakMap<SecretKey, EngineSecretKey>();
  #closed = false;

  constructor(engine: Engine) {
    this.name = engine.name;
    this.version = engine.version;
    this.cpuPath = engine.cpuPath;
    this.#engine = addComposites(engine);
  }

  async generateKeyPair(algorithm: Algorithm): Promise<KeyPair> {
    this.#checkOpen();
    checkAlgorithm(algorithm);
    const secretKey = this.#adoptSecretKey(algorithm, await this.#engine.generateKeyPair(algorithm));
    return { publicKey: secretKey.publicKey, secretKey };
  }

  importPublicKey(algorithm: Algorithm, material: PublicKeyMaterial): PublicKey {
    this.#checkOpen();
    checkAlgorithm(algorithm);
    checkMaterial(material, "raw", "pem");
    const raw = "pem" in material ? decodePublicKeyPem(algorithm, material.pem) : material.raw;
    checkLength("INVALID_KEY", `the ${algorithm} public key`, raw, algorithms[algorithm].publicKeyBytes);
    if (isMlKemAlgorithm(algorithm)) checkEncapsulationKey(algorithm, raw);
    // Any 32 bytes are a valid X25519 key (RFC 7748, section 5). draft-connolly-cfrg-xwing-kem-11, section 4,
    // accepts points of low order because the result is as secure as its ML-KEM half.
    if (algorithm === "X-Wing") checkEncapsulationKey(algorithm, raw.subarray(0, mlKem768.publicKeyBytes));
    if (algorithm === "ECDSA-P256") checkPointForm(algorithm, raw);
    return this.#adoptPublicKey(algorithm, this.#engine.importPublicKey(algorithm, raw));
  }

  async importSecretKey(algorithm: Algorithm, material: SecretKeyMaterial): Promise<SecretKey> {
    this.#checkOpen();
    checkAlgorithm(algorithm);
    checkMaterial(material, "raw", "seed", "pem", "der");
    if ("raw" in material || "seed" in material)
      return this.#importSecretKey(algorithm, toSecretKeyForm(algorithm, material));
    const isPem = "pem" in material;
    const parts = isPem
      ? decodeSecretKeyPem(algorithm, material.pem)
      : decodeSecretKeyDer(algorithm, material.der);
    try {
      const secretKey = await this.#importSecretKey(algorithm, toSecretKeyForm(algorithm, parts));
      const { publicKey = secretKey.publicKey.exportRaw() } = parts;
      if (equalBytes(publicKey, secretKey.publicKey.exportRaw())) return secretKey;
      throw invalidKey(`the ${algorithm} public key in the PKCS#8 document does not match its private key`);
    } finally {
      // Parsed DER parts are views into the caller's bytes.
      if (isPem) wipe(parts.seed, parts.raw);
    }
  }

  async sign(secretKey: SecretKey, message: Uint8Array, options?: SignatureOptions): Promise<Uint8Array> {
    const key = this.#openSecretKey(secretKey);
    const { algorithm } = secretKey;
    if (!isSignatureAlgorithm(algorithm)) throw wrongUse(algorithm, "sign");
    checkBytes("message", message);
    return key.sign(message, checkSignatureOptions(algorithm, options));
  }

  startRepresentative(publicKey: PublicKey, options?: Pick<SignatureOptions, "context">): RepresentativeHash {
    const key = this.#openPublicKey(publicKey);
    const { algorithm } = publicKey;
    const isComposite = isCompositeAlgorithm(algorithm);
    if (!isComposite && !isMlDsaAlgorithm(algorithm)) throw noRepresentative(algorithm);
    const { context = new Uint8Array() } = checkSignatureOptions(algorithm, options);
    return new CheckedHash(
      isComposite ? startRepresentative(algorithm, context) : startMu(key.exportRaw(), context),
    );
  }

  async signRepresentative(secretKey: SecretKey, representative: Uint8Array): Promise<Uint8Array> {
    const key = this.#openSecretKey(secretKey);
    checkRepresentative(secretKey.algorithm, representative);
    return key.signRepresentative(representative);
  }

  async verifyRepresentative(
    publicKey: PublicKey,
    representative: Uint8Array,
    signature: Uint8Array,
  ): Promise<boolean> {
    const key = this.#openPublicKey(publicKey);
    const algorithm: Algorithm = publicKey.algorithm;
    checkRepresentative(algorithm, representative);
    checkBytes("signature", signature);
    return (
      isSignatureLength(algorithm, signature.length) && key.verifyRepresentative(representative, signature)
    );
  }

  async verify(
    publicKey: PublicKey,
    message: Uint8Array,
    signature: Uint8Array,
    options?: SignatureOptions,
  ): Promise<boolean> {
    const key = this.#openPublicKey(publicKey);
    const { algorithm } = publicKey;
    if (!isSignatureAlgorithm(algorithm)) throw wrongUse(algorithm, "verify");
    checkBytes("message", message);
    checkBytes("signature", signature);
    const checkedOptions = checkSignatureOptions(algorithm, options);
    const isLength =
      checkedOptions.ecdsaEncoding === "ieee-p1363"
        ? signature.length === 64
        : isSignatureLength(algorithm, signature.length);
    return isLength && key.verify(message, signature, checkedOptions);
  }

  async encapsulate(publicKey: PublicKey): Promise<Encapsulation> {
    const key = this.#openPublicKey(publicKey);
    const { algorithm } = publicKey;
    if (!isKemAlgorithm(algorithm)) throw wrongUse(algorithm, "encapsulate");
    return key.encapsulate();
  }

  async decapsulate(secretKey: SecretKey, ciphertext: Uint8Array): Promise<Uint8Array> {
    const key = this.#openSecretKey(secretKey);
    const { algorithm } = secretKey;
    if (!isKemAlgorithm(algorithm)) throw wrongUse(algorithm, "decapsulate");
    const { ciphertextBytes } = kemAlgorithms[algorithm];
    checkLength("INVALID_ARGUMENT", `the ${algorithm} ciphertext`, ciphertext, ciphertextBytes);
    return key.decapsulate(ciphertext);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#engine.close();
  }

  async #importSecretKey(algorithm: Algorithm, form: SecretKeyForm): Promise<SecretKey> {
    const { secretKeyBytes, seedBytes } = algorithms[algorithm];
    if (form.kind !== "raw") {
      if (seedBytes === undefined) throw new CryptoError("UNSUPPORTED", `${algorithm} has no seed form`);
      checkLength("INVALID_KEY", `the ${algorithm} seed`, form.seed, seedBytes);
    }
    if (form.kind !== "seed") {
      checkLength("INVALID_KEY", `the expanded ${algorithm} secret key`, form.raw, secretKeyBytes);
      if (isMlKemAlgorithm(algorithm)) checkDecapsulationKey(algorithm, form.raw);
      if (algorithm === "ECDSA-P256") checkScalar(algorithm, form.raw);
    }
    const imported = await this.#engine.importSecretKey(algorithm, form);
    return this.#adoptSecretKey(algorithm, imported);
  }

  #adoptPublicKey(algorithm: Algorithm, key: LibraryPublicKey): PublicKey {
    const publicKey = new EnginePublicKey(algorithm, key);
    this.#publicKeys.set(publicKey, key);
    return publicKey;
  }

  #adoptSecretKey(algorithm: Algorithm, key: LibrarySecretKey): SecretKey {
    const publicKey = this.#adoptPublicKey(algorithm, key.publicKey);
    const secretKey = new EngineSecretKey(algorithm, key, publicKey);
    this.#secretKeys.set(secretKey, secretKey);
    return secretKey;
  }

  #openPublicKey(publicKey: PublicKey): LibraryPublicKey {
    return this.#requireOwn("public", this.#publicKeys.get(publicKey));
  }

  #openSecretKey(secretKey: SecretKey): LibrarySecretKey {
    return this.#requireOwn("secret", this.#secretKeys.get(secretKey)).open();
  }

  #requireOwn<Key>(half: "public" | "secret", ours: Key | undefined): Key {
    this.#checkOpen();
    if (ours !== undefined) return ours;
    throw invalidArgument(
      `not a ${half} key of this ${this.name} provider; export it there and import it here`,
    );
  }

  #checkOpen(): void {
    if (this.#closed) throw new CryptoError("CLOSED", `the ${this.name} provider is closed`);
  }
}

function toSecretKeyForm(
  algorithm: Algorithm,
  parts: { seed?: Uint8Array; raw?: Uint8Array },
): SecretKeyForm {
  const { seed, raw } = parts;
  if (seed !== undefined && raw !== undefined) return { kind: "both", seed, raw };
  if (seed !== undefined) return { kind: "seed", seed };
  if (raw !== undefined) return { kind: "raw", raw };
  throw invalidArgument(`the ${algorithm} secret key must be raw, seed or pem`);
}

/**
 * Checks that an algorithm has message representatives, and that this can be one: 64 bytes for ML-DSA, M′ for
 * composites.
 */
function checkRepresentative(
  algorithm: Algorithm,
  representative: Uint8Array,
): asserts algorithm is MlDsaAlgorithm | CompositeAlgorithm {
  if (isMlDsaAlgorithm(algorithm)) checkLength("INVALID_ARGUMENT", "mu", representative, muBytes);
  else if (!isCompositeAlgorithm(algorithm)) throw noRepresentative(algorithm);
  else if (!isRepresentative(algorithm, representative))
    throw invalidArgument(`the representative is not the M' of a message for ${algorithm}`);
}

/** Evens out library differences in how they treat strings and calls after the digest. */
class CheckedHash implements RepresentativeHash {
  #hash: IncrementalHash | undefined;

  constructor(hash: IncrementalHash) {
    this.#hash = hash;
  }

  update(chunk: Uint8Array): void {
    checkBytes("chunk", chunk);
    this.#open().update(chunk);
  }

  digest(): Uint8Array {
    const hash = this.#open();
    this.#hash = undefined;
    return hash.digest();
  }

  #open(): IncrementalHash {
    if (this.#hash === undefined)
      throw new CryptoError("CLOSED", "the representative was already computed; start a new one");
    return this.#hash;
  }
}

function noRepresentative(algorithm: Algorithm): CryptoError {
  return wrongUse(algorithm, "sign a message representative");
}

function wrongUse(algorithm: Algorithm, operation: string): CryptoError {
  return invalidArgument(`${algorithms[algorithm].family} keys cannot ${operation}`);
}

import {
  type Algorithm,
  algorithms,
  isKemAlgorithm,
  isMlDsaAlgorithm,
  isMlKemAlgorithm,
  isSignatureAlgorithm,
  kemAlgorithms,
  type SignatureAlgorithm,
  signatureAlgorithms,
} from "./algorithms.ts";
import { equalBytes, wipe } from "./bytes.ts";
import { checkAlgorithm, checkBytes, checkLength, checkMaterial, checkSignatureOptions } from "./checks.ts";
import { CryptoError, invalidArgument, invalidKey } from "./crypto-error.ts";
import { checkPointForm, checkScalar } from "./ecdsa.ts";
import type { Engine, LibraryPublicKey, LibrarySecretKey, SecretKeyForm } from "./engine.ts";
import { decodePublicKeyPem, decodeSecretKeyDer, decodeSecretKeyPem } from "./key-encoding.ts";
import { EnginePublicKey, EngineSecretKey } from "./keys.ts";
import { muBytes, startMu } from "./ml-dsa.ts";
import { checkDecapsulationKey, checkEncapsulationKey } from "./ml-kem.ts";
import type {
  CryptoProvider,
  EcdsaEncoding,
  Encapsulation,
  KeyPair,
  MuHash,
  ProviderName,
  PublicKey,
  PublicKeyMaterial,
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
  readonly #engine: Engine;
  /** Keys that this provider created. It rejects keys from other providers, even of the same class. */
  readonly #publicKeys = new WeakMap<PublicKey, EnginePublicKey>();
  readonly #secretKeys = new WeakMap<SecretKey, EngineSecretKey>();
  #closed = false;

  constructor(engine: Engine) {
    this.name = engine.name;
    this.version = engine.version;
    this.cpuPath = engine.cpuPath;
    this.#engine = engine;
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
    if (algorithm === "ECDSA-P256") checkPointForm(raw);
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

  startMu(publicKey: PublicKey, options?: Pick<SignatureOptions, "context">): MuHash {
    const key = this.#openPublicKey(publicKey);
    const { algorithm } = publicKey;
    if (!isMlDsaAlgorithm(algorithm)) throw wrongUse(algorithm, "use mu");
    const { context = new Uint8Array() } = checkSignatureOptions(algorithm, options);
    return startMu(this.#engine.startShake256, key.exportRaw(), context);
  }

  async signMu(secretKey: SecretKey, mu: Uint8Array): Promise<Uint8Array> {
    const key = this.#openSecretKey(secretKey);
    const { algorithm } = secretKey;
    if (!isMlDsaAlgorithm(algorithm)) throw wrongUse(algorithm, "use mu");
    checkLength("INVALID_ARGUMENT", "mu", mu, muBytes);
    return key.signMu(mu);
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
    const expectedBytes = findSignatureLength(algorithm, checkedOptions.ecdsaEncoding);
    if (expectedBytes !== undefined && signature.length !== expectedBytes) return false;
    return key.verify(message, signature, checkedOptions);
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

  sha256(message: Uint8Array): Uint8Array {
    checkBytes("message", message);
    return this.#engine.sha256(message);
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
      if (algorithm === "ECDSA-P256") checkScalar(form.raw);
    }
    const imported = await this.#engine.importSecretKey(algorithm, form);
    return this.#adoptSecretKey(algorithm, imported);
  }

  #adoptPublicKey(algorithm: Algorithm, key: LibraryPublicKey): PublicKey {
    const publicKey = new EnginePublicKey(algorithm, key);
    this.#publicKeys.set(publicKey, publicKey);
    return publicKey;
  }

  #adoptSecretKey(algorithm: Algorithm, key: LibrarySecretKey): SecretKey {
    const publicKey = this.#adoptPublicKey(algorithm, key.publicKey);
    const secretKey = new EngineSecretKey(algorithm, key, publicKey);
    this.#secretKeys.set(secretKey, secretKey);
    return secretKey;
  }

  #openPublicKey(publicKey: PublicKey): LibraryPublicKey {
    return this.#requireOwn("public", this.#publicKeys.get(publicKey)).open();
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

/** The fixed length of a signature in bytes; undefined for DER, whose length varies. */
function findSignatureLength(
  algorithm: SignatureAlgorithm,
  ecdsaEncoding: EcdsaEncoding,
): number | undefined {
  if (algorithm !== "ECDSA-P256") return signatureAlgorithms[algorithm].signatureBytes;
  return ecdsaEncoding === "ieee-p1363" ? 64 : undefined;
}

function wrongUse(algorithm: Algorithm, operation: string): CryptoError {
  return invalidArgument(`${algorithms[algorithm].family} keys cannot ${operation}`);
}

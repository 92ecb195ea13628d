/** A provider whose long operations wait in a queue: see work-queue.ts. */
import type { Algorithm } from "./algorithms.ts";
import { copyDeep, wipeDeep } from "./bytes.ts";
import { type CostlyOperation, findCost } from "./costs.ts";
import type {
  CryptoProvider,
  Encapsulation,
  KeyPair,
  MuHash,
  PublicKey,
  PublicKeyMaterial,
  SecretKey,
  SecretKeyMaterial,
  SignatureOptions,
} from "./provider.ts";
import { systemCaller, type WorkQueue } from "./work-queue.ts";

/** Measures an operation, from its call to its result. @param work receives what to call when it no longer waits */
export type MeasureOperation = <T>(
  operation: string,
  algorithm: Algorithm,
  work: (began: (() => void) | undefined) => Promise<T>,
) => Promise<T>;

/** The terms under which one form of a provider submits work. */
interface Terms {
  readonly isUnbounded: boolean;
  /** Names the caller who is charged for the current work. */
  readonly callerOf: () => string;
  readonly measure: MeasureOperation | undefined;
}

/**
 * Puts a provider behind a queue. It refuses work that would have to wait too long with CryptoBusyError.
 *
 * @param callerOf names the caller who is charged; without it all callers share one turn.
 * @param measure measures each operation; left out, it costs nothing
 */
export function queueProvider(
  provider: CryptoProvider,
  queue: WorkQueue,
  callerOf: () => string = () => "all callers",
  measure?: MeasureOperation,
): CryptoProvider {
  const system = new QueuedProvider(provider, queue, {
    isUnbounded: true,
    callerOf: () => systemCaller,
    measure,
  });
  const unbounded = new QueuedProvider(provider, queue, { isUnbounded: true, callerOf, measure }, { system });
  const terms = { isUnbounded: false, callerOf, measure };
  return new QueuedProvider(provider, queue, terms, { system, unbounded });
}

class QueuedProvider implements CryptoProvider {
  readonly name: CryptoProvider["name"];
  readonly version: string;
  readonly cpuPath: string | undefined;
  readonly unbounded: CryptoProvider;
  readonly system: CryptoProvider;
  readonly #inner: CryptoProvider;
  readonly #queue: WorkQueue;
  readonly #terms: Terms;

  /** @param forms the other forms; a missing form is this one */
  constructor(
    inner: CryptoProvider,
    queue: WorkQueue,
    terms: Terms,
    forms: Partial<Pick<CryptoProvider, "unbounded" | "system">> = {},
  ) {
    this.name = inner.name;
    this.version = inner.version;
    this.cpuPath = inner.cpuPath;
    this.#inner = inner;
    this.#queue = queue;
    this.#terms = terms;
    this.unbounded = forms.unbounded ?? this;
    this.system = forms.system ?? this;
  }

  generateKeyPair(algorithm: Algorithm): Promise<KeyPair> {
    return this.#run("generate", algorithm, {}, () => this.#inner.generateKeyPair(algorithm));
  }

  importPublicKey(algorithm: Algorithm, material: PublicKeyMaterial): PublicKey {
    return this.#inner.importPublicKey(algorithm, material);
  }

  importSecretKey(algorithm: Algorithm, material: SecretKeyMaterial): Promise<SecretKey> {
    // A call that opens a stored key has already done most of its work, so the import may wait longer.
    const start = (kept: { material: SecretKeyMaterial }) =>
      this.#inner.importSecretKey(algorithm, kept.material);
    const isUnbounded = true;
    return this.#run("import", algorithm, { material }, start, isUnbounded);
  }

  sign(secretKey: SecretKey, message: Uint8Array, options?: SignatureOptions): Promise<Uint8Array> {
    return this.#run("sign", secretKey.algorithm, { message, options }, (kept) =>
      this.#inner.sign(secretKey, kept.message, kept.options),
    );
  }

  startMu(publicKey: PublicKey, options?: Pick<SignatureOptions, "context">): MuHash {
    return this.#inner.startMu(publicKey, options);
  }

  signMu(secretKey: SecretKey, mu: Uint8Array): Promise<Uint8Array> {
    return this.#run("sign mu", secretKey.algorithm, { mu }, (kept) =>
      this.#inner.signMu(secretKey, kept.mu),
    );
  }

  verify(
    publicKey: PublicKey,
    message: Uint8Array,
    signature: Uint8Array,
    options?: SignatureOptions,
  ): Promise<boolean> {
    return this.#run("verify", publicKey.algorithm, { message, signature, options }, (kept) =>
      this.#inner.verify(publicKey, kept.message, kept.signature, kept.options),
    );
  }

  encapsulate(publicKey: PublicKey): Promise<Encapsulation> {
    return this.#run("encapsulate", publicKey.algorithm, {}, () => this.#inner.encapsulate(publicKey));
  }

  decapsulate(secretKey: SecretKey, ciphertext: Uint8Array): Promise<Uint8Array> {
    return this.#run("decapsulate", secretKey.algorithm, { ciphertext }, (kept) =>
      this.#inner.decapsulate(secretKey, kept.ciphertext),
    );
  }

  sha256(message: Uint8Array): Uint8Array {
    return this.#inner.sha256(message);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  #run<Input extends object, T>(
    operation: CostlyOperation,
    algorithm: Algorithm,
    input: Input,
    start: (kept: Input) => Promise<T>,
    isUnbounded = this.#terms.isUnbounded,
  ): Promise<T> {
    const { measure } = this.#terms;
    if (measure === undefined) return this.#runInTurn(operation, algorithm, input, start, isUnbounded);
    return measure(operation, algorithm, (began) => {
      const startMeasured = (kept: Input): Promise<T> => {
        began?.();
        return start(kept);
      };
      return this.#runInTurn(operation, algorithm, input, startMeasured, isUnbounded);
    });
  }

  async #runInTurn<Input extends object, T>(
    operation: CostlyOperation,
    algorithm: Algorithm,
    input: Input,
    start: (kept: Input) => Promise<T>,
    isUnbounded: boolean,
  ): Promise<T> {
    let kept = input;
    const messageBytes = "message" in input && input.message instanceof Uint8Array ? input.message.length : 0;
    try {
      return await this.#queue.run({
        ...findCost(operation, algorithm, messageBytes),
        caller: this.#terms.callerOf(),
        isUnbounded,
        beforeWait: () => {
          kept = copyDeep(input);
        },
        start: () => start(kept),
      });
    } finally {
      if (kept !== input) wipeDeep(kept);
    }
  }
}

/** Queues a provider's long operations; see work-queue.ts. */
import { type Algorithm, isMlDsaAlgorithm } from "./algorithms.ts";
import { copyDeep, wipeDeep } from "./bytes.ts";
import { type CostlyOperation, findCost } from "./costs.ts";
import type { CryptoProvider } from "./provider.ts";
import { systemCaller, type WorkQueue } from "./work-queue.ts";

/**
 * Measures an operation from its call to its result.
 *
 * @param work receives a callback to call when the operation stops waiting
 */
export type MeasureOperation = <T>(
  operation: string,
  algorithm: Algorithm,
  work: (began: (() => void) | undefined) => Promise<T>,
) => Promise<T>;

/** The caller to charge for shared work. */
const sharedCaller = "shared work";

/** How one variant of a provider submits work. */
interface Terms {
  readonly isUnbounded: boolean;
  /** Returns the caller to charge for the current work. */
  readonly callerOf: () => string;
  /** Returns a signal that aborts when the caller no longer waits for the current work. */
  readonly signalOf?: (() => AbortSignal | undefined) | undefined;
  readonly measure: MeasureOperation;
}

/** What the queue needs to know about the current call. */
export type CurrentCall = Pick<Terms, "callerOf" | "signalOf">;

/**
 * Puts a provider behind a queue, which rejects work that would have to wait too long with CryptoBusyError.
 *
 * @param call the current call
 * @param measure measures each operation; omit it to avoid the overhead
 */
export function queueProvider(
  provider: CryptoProvider,
  queue: WorkQueue,
  call: CurrentCall,
  measure: MeasureOperation = (_operation, _algorithm, work) => work(undefined),
): CryptoProvider {
  const create = (terms: Omit<Terms, "measure">, forms?: Forms) =>
    createForm(provider, queue, { ...terms, measure }, forms);
  const system = create({ isUnbounded: true, callerOf: () => systemCaller });
  const shared = create({ isUnbounded: true, callerOf: () => sharedCaller });
  const unbounded = create({ ...call, isUnbounded: true }, { system });
  return create({ ...call, isUnbounded: false }, { system, shared, unbounded });
}

/** Other variants of a provider; a missing one defaults to the provider itself. */
type Forms = Partial<Pick<CryptoProvider, "unbounded" | "system" | "shared">>;

function createForm(
  inner: CryptoProvider,
  queue: WorkQueue,
  { isUnbounded, callerOf, signalOf, measure }: Terms,
  forms: Forms = {},
): CryptoProvider {
  const run = <Input extends object, T>(
    operation: CostlyOperation,
    algorithm: Algorithm,
    input: Input,
    start: (kept: Input) => Promise<T>,
    mayWaitLong = isUnbounded,
  ): Promise<T> =>
    measure(operation, algorithm, async (began) => {
      const messageBytes =
        "message" in input && input.message instanceof Uint8Array ? input.message.length : 0;
      // OpenSSL does not take μ, and the native provider only signs it.
      const isByNoble =
        "representative" in input &&
        isMlDsaAlgorithm(algorithm) &&
        (operation === "verify" || inner.name === "openssl");
      let kept = input;
      try {
        return await queue.run({
          ...findCost(operation, algorithm, { messageBytes, isByNoble }),
          caller: callerOf(),
          // Not cancellable: other calls may be waiting for the same imported key.
          signal: operation === "import" ? undefined : signalOf,
          isUnbounded: mayWaitLong,
          beforeWait: () => {
            kept = copyDeep(input);
          },
          start: () => {
            began?.();
            return start(kept);
          },
        });
      } finally {
        if (kept !== input) wipeDeep(kept);
      }
    });
  return {
    name: inner.name,
    version: inner.version,
    cpuPath: inner.cpuPath,
    get unbounded() {
      return forms.unbounded ?? this;
    },
    get system() {
      return forms.system ?? this;
    },
    get shared() {
      return forms.shared ?? this;
    },
    generateKeyPair: (algorithm) => run("generate", algorithm, {}, () => inner.generateKeyPair(algorithm)),
    importPublicKey: (algorithm, material) => inner.importPublicKey(algorithm, material),
    // A call that opens a stored key has already done most of its work, so the import may wait longer.
    importSecretKey: (algorithm, material) =>
      run("import", algorithm, { material }, (kept) => inner.importSecretKey(algorithm, kept.material), true),
    sign: (secretKey, message, options) =>
      run("sign", secretKey.algorithm, { message, options }, (kept) =>
        inner.sign(secretKey, kept.message, kept.options),
      ),
    startRepresentative: (publicKey, options) => inner.startRepresentative(publicKey, options),
    signRepresentative: (secretKey, representative) =>
      run("sign representative", secretKey.algorithm, { representative }, (kept) =>
        inner.signRepresentative(secretKey, kept.representative),
      ),
    verifyRepresentative: (publicKey, representative, signature) =>
      run("verify", publicKey.algorithm, { representative, signature }, (kept) =>
        inner.verifyRepresentative(publicKey, kept.representative, kept.signature),
      ),
    verify: (publicKey, message, signature, options) =>
      run("verify", publicKey.algorithm, { message, signature, options }, (kept) =>
        inner.verify(publicKey, kept.message, kept.signature, kept.options),
      ),
    encapsulate: (publicKey) =>
      run("encapsulate", publicKey.algorithm, {}, () => inner.encapsulate(publicKey)),
    decapsulate: (secretKey, ciphertext) =>
      run("decapsulate", secretKey.algorithm, { ciphertext }, (kept) =>
        inner.decapsulate(secretKey, kept.ciphertext),
      ),
    close: () => inner.close(),
  };
}

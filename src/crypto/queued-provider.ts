/** A provider whose long operations wait in a queue: see work-queue.ts. */
import type { Algorithm } from "./algorithms.ts";
import { copyDeep, wipeDeep } from "./bytes.ts";
import { type CostlyOperation, findCost } from "./costs.ts";
import type { CryptoProvider } from "./provider.ts";
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
  /** Returns what aborts when the caller no longer waits for the current work. */
  readonly signalOf?: (() => AbortSignal | undefined) | undefined;
  readonly measure: MeasureOperation;
}

/** The current call, as far as the queue knows it. */
export type CurrentCall = Pick<Terms, "callerOf" | "signalOf">;

/**
 * Puts a provider behind a queue. It refuses work that would have to wait too long with CryptoBusyError.
 *
 * @param call the call that the current work belongs to; without it all callers share one turn
 * @param measure measures each operation; left out, it costs nothing
 */
export function queueProvider(
  provider: CryptoProvider,
  queue: WorkQueue,
  call: CurrentCall = { callerOf: () => "all callers" },
  measure: MeasureOperation = (_operation, _algorithm, work) => work(undefined),
): CryptoProvider {
  const create = (terms: Omit<Terms, "measure">, forms?: Forms) =>
    createForm(provider, queue, { ...terms, measure }, forms);
  const system = create({ isUnbounded: true, callerOf: () => systemCaller });
  const unbounded = create({ ...call, isUnbounded: true }, { system });
  return create({ ...call, isUnbounded: false }, { system, unbounded });
}

/** The other forms of a provider; a missing form is the provider itself. */
type Forms = Partial<Pick<CryptoProvider, "unbounded" | "system">>;

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
      let kept = input;
      try {
        return await queue.run({
          ...findCost(operation, algorithm, messageBytes),
          caller: callerOf(),
          // Other calls may wait for the key that a call imports.
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
    generateKeyPair: (algorithm) => run("generate", algorithm, {}, () => inner.generateKeyPair(algorithm)),
    importPublicKey: (algorithm, material) => inner.importPublicKey(algorithm, material),
    // A call that opens a stored key has already done most of its work, so the import may wait longer.
    importSecretKey: (algorithm, material) =>
      run("import", algorithm, { material }, (kept) => inner.importSecretKey(algorithm, kept.material), true),
    sign: (secretKey, message, options) =>
      run("sign", secretKey.algorithm, { message, options }, (kept) =>
        inner.sign(secretKey, kept.message, kept.options),
      ),
    startMu: (publicKey, options) => inner.startMu(publicKey, options),
    signMu: (secretKey, mu) =>
      run("sign mu", secretKey.algorithm, { mu }, (kept) => inner.signMu(secretKey, kept.mu)),
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
    sha256: (message) => inner.sha256(message),
    close: () => inner.close(),
  };
}

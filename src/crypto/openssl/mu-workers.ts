import { Worker } from "node:worker_threads";
import { findThread } from "../../program-files.ts";
import { copyDeep, wipeDeep } from "../bytes.ts";
import { CryptoError, type CryptoErrorCode } from "../crypto-error.ts";
import type { Operations } from "../noble/operations.ts";

/** A message to a worker: the name of an operation and its one argument. */
export interface WorkerRequest {
  readonly operation: keyof Operations;
  readonly input: unknown;
}

/** The worker's reply. A failure without a code is a bug, not a refusal. */
export type WorkerReply =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly code: CryptoErrorCode | undefined; readonly message: string };

interface Job extends WorkerRequest {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Runs operations on worker threads, first come, first served. Threads start when there is work
 * for them, keep the process alive only while they work, and live until `close`.
 */
export class WorkerPool {
  readonly #maxWorkers: number;
  readonly #queue: Job[] = [];
  readonly #idle: Worker[] = [];
  /** Every running worker and its job. */
  readonly #jobs = new Map<Worker, Job | undefined>();
  #closed = false;

  constructor(maxWorkers: number) {
    this.#maxWorkers = maxWorkers;
  }

  /**
   * Copies the input before it returns, so that the caller may change or wipe it while the job waits.
   *
   * @throws the operation's error; CLOSED when the pool is closed before or during the job.
   */
  run<Name extends keyof Operations>(
    operation: Name,
    input: Parameters<Operations[Name]>[0],
  ): Promise<ReturnType<Operations[Name]>> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(closedError());
      // The worker runs the operation of this name, so the result has this type.
      const settle = (result: unknown) => resolve(result as ReturnType<Operations[Name]>);
      this.#queue.push({ operation, input: copyDeep(input), resolve: settle, reject });
      this.#dispatch();
    });
  }

  /** Stops all workers at once and rejects all running and waiting jobs. */
  async close(): Promise<void> {
    this.#closed = true;
    const waiting = this.#queue.splice(0);
    for (const job of waiting) wipeDeep(job.input);
    const unfinished = [...this.#jobs.values(), ...waiting];
    const workers = [...this.#jobs.keys()];
    this.#jobs.clear();
    for (const job of unfinished) job?.reject(closedError());
    await Promise.all(workers.map((worker) => worker.terminate()));
  }

  #dispatch(): void {
    const worker = this.#queue.length > 0 ? (this.#idle.pop() ?? this.#startWorker()) : undefined;
    const job = worker && this.#queue.shift();
    if (worker === undefined || job === undefined) return;
    this.#jobs.set(worker, job);
    worker.ref();
    worker.postMessage({ operation: job.operation, input: job.input } satisfies WorkerRequest);
    wipeDeep(job.input);
  }

  #startWorker(): Worker | undefined {
    if (this.#jobs.size >= this.#maxWorkers) return undefined;
    const worker = new Worker(findThread("crypto/openssl/mu-thread.ts"), { name: "noble", execArgv: [] });
    this.#jobs.set(worker, undefined);
    worker.on("message", (reply: WorkerReply) => this.#finish(worker, reply));
    worker.on("error", (error) => this.#bury(worker, new Error("a noble worker died", { cause: error })));
    worker.on("exit", (exitCode) =>
      this.#bury(worker, new Error(`a noble worker ended with code ${exitCode}`)),
    );
    return worker;
  }

  #finish(worker: Worker, reply: WorkerReply): void {
    const job = this.#jobs.get(worker);
    if (job === undefined) return;
    this.#jobs.set(worker, undefined);
    this.#idle.push(worker);
    worker.unref();
    if (reply.ok) job.resolve(reply.result);
    else if (reply.code === undefined)
      job.reject(new Error(`noble failed to ${job.operation}: ${reply.message}`));
    else job.reject(new CryptoError(reply.code, reply.message));
    this.#dispatch();
  }

  /** Removes a dead worker. Its job fails, and the next job gets a new thread. */
  #bury(worker: Worker, error: Error): void {
    if (!this.#jobs.has(worker)) return;
    this.#jobs.get(worker)?.reject(error);
    this.#jobs.delete(worker);
    const position = this.#idle.indexOf(worker);
    if (position >= 0) this.#idle.splice(position, 1);
    this.#dispatch();
  }
}

function closedError(): CryptoError {
  return new CryptoError("CLOSED", "the provider is closed");
}

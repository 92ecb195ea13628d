import { Worker } from "node:worker_threads";
import { findThread } from "../../program-files.ts";
import type { MlDsaAlgorithm } from "../algorithms.ts";
import { wipeDeep } from "../bytes.ts";
import { CryptoError } from "../crypto-error.ts";
import type { SeedOrRaw } from "../engine.ts";

export interface MuRequest {
  readonly algorithm: MlDsaAlgorithm;
  /** A key that passed OpenSSL's checks: the noble library would sign even with a damaged key. */
  readonly secretKey: SeedOrRaw;
  readonly mu: Uint8Array;
}

interface Job {
  readonly request: MuRequest;
  readonly resolve: (signature: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Signs μ on worker threads, first come, first served, because the noble library takes about 10 ms. Threads
 * start on demand, keep the process alive only while they work, and live until `close`.
 */
export class MuWorkers {
  readonly #maxWorkers: number;
  readonly #queue: Job[] = [];
  /** Running workers and their jobs; undefined for an idle worker. */
  readonly #jobs = new Map<Worker, Job | undefined>();
  #closed = false;

  constructor(maxWorkers: number) {
    this.#maxWorkers = maxWorkers;
  }

  /**
   * Signs μ (FIPS 204, algorithm 7 from line 7 on).
   *
   * @param request wiped after use, so its bytes must be copies
   * @throws CLOSED if the workers are closed before or during the job
   */
  sign(request: MuRequest): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(closedError());
      this.#queue.push({ request, resolve, reject });
      this.#dispatch();
    });
  }

  /** Stops all workers at once and rejects all running and waiting jobs. */
  async close(): Promise<void> {
    this.#closed = true;
    const waiting = this.#queue.splice(0);
    for (const { request } of waiting) wipeDeep(request);
    const unfinished = [...this.#jobs.values(), ...waiting];
    const workers = [...this.#jobs.keys()];
    this.#jobs.clear();
    for (const job of unfinished) job?.reject(closedError());
    await Promise.all(workers.map((worker) => worker.terminate()));
  }

  #dispatch(): void {
    if (this.#queue.length === 0) return;
    const [idle] = [...this.#jobs].find(([, job]) => job === undefined) ?? [];
    const worker = idle ?? this.#startWorker();
    const job = worker && this.#queue.shift();
    if (worker === undefined || job === undefined) return;
    this.#jobs.set(worker, job);
    worker.ref();
    worker.postMessage(job.request);
    wipeDeep(job.request);
  }

  #startWorker(): Worker | undefined {
    if (this.#jobs.size >= this.#maxWorkers) return undefined;
    const worker = new Worker(findThread("crypto/openssl/mu-thread.ts"), { name: "mu", execArgv: [] });
    worker.on("message", (signature: Uint8Array) => this.#finish(worker, signature));
    worker.on("error", (error) =>
      this.#bury(worker, new Error("a mu-signing worker died", { cause: error })),
    );
    worker.on("exit", (exitCode) =>
      this.#bury(worker, new Error(`a mu-signing worker exited with code ${exitCode}`)),
    );
    return worker;
  }

  #finish(worker: Worker, signature: Uint8Array): void {
    const job = this.#jobs.get(worker);
    if (job === undefined) return;
    this.#jobs.set(worker, undefined);
    worker.unref();
    job.resolve(signature);
    this.#dispatch();
  }

  /** Removes a dead worker. Its job fails, and the next job gets a new thread. */
  #bury(worker: Worker, error: Error): void {
    if (!this.#jobs.has(worker)) return;
    this.#jobs.get(worker)?.reject(error);
    this.#jobs.delete(worker);
    this.#dispatch();
  }
}

function closedError(): CryptoError {
  return new CryptoError("CLOSED", "the provider is closed");
}

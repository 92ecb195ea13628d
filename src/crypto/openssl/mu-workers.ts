import { Worker } from "node:worker_threads";
import { findThread } from "../../program-files.ts";
import type { MlDsaAlgorithm } from "../algorithms.ts";
import { wipeDeep } from "../bytes.ts";
import { CryptoError } from "../crypto-error.ts";
import type { SeedOrRaw } from "../engine.ts";

/** A message to a worker. */
export interface MuRequest {
  readonly algorithm: MlDsaAlgorithm;
  /** Of a key that passed the checks of OpenSSL: the noble library signs with damaged keys. */
  readonly secretKey: SeedOrRaw;
  readonly mu: Uint8Array;
}

/** The worker's reply. */
export type MuReply =
  | { readonly ok: true; readonly signature: Uint8Array }
  | { readonly ok: false; readonly message: string };

interface Job {
  readonly request: MuRequest;
  readonly resolve: (signature: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Signs μ on worker threads, because the noble library takes about 10 ms: first come, first served. Threads start when
 * there is work for them, keep the process alive only while they work, and live until `close`.
 */
export class MuWorkers {
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
   * Signs μ (FIPS 204, algorithm 7 from line 7 on).
   *
   * @param request is wiped, so its bytes must be copies.
   * @throws CLOSED when the workers are closed before or during the job.
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
    const worker = this.#queue.length > 0 ? (this.#idle.pop() ?? this.#startWorker()) : undefined;
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
    this.#jobs.set(worker, undefined);
    worker.on("message", (reply: MuReply) => this.#finish(worker, reply));
    worker.on("error", (error) =>
      this.#bury(worker, new Error("a worker that signs mu died", { cause: error })),
    );
    worker.on("exit", (exitCode) =>
      this.#bury(worker, new Error(`a worker that signs mu ended with code ${exitCode}`)),
    );
    return worker;
  }

  #finish(worker: Worker, reply: MuReply): void {
    const job = this.#jobs.get(worker);
    if (job === undefined) return;
    this.#jobs.set(worker, undefined);
    this.#idle.push(worker);
    worker.unref();
    if (reply.ok) job.resolve(reply.signature);
    else job.reject(new Error(`noble failed to sign mu: ${reply.message}`));
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

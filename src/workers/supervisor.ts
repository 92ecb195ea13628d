/**
 * Starts a server on several event loops, each with a whole server on its own thread. The system spreads the
 * connections over them. This thread serves no calls: it starts the workers, replaces those that die, joins their
 * metrics and stops them.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { MessageChannel, Worker } from "node:worker_threads";
import { CliError } from "../cli/exit-codes.ts";
import { countSlowPlaces } from "../crypto/work-queue.ts";
import { findThread } from "../program-files.ts";
import { findPort } from "../server/find-port.ts";
import { joinMetrics, keepCounts } from "../server/join-metrics.ts";
import type { MetricsDump } from "../server/metrics.ts";
import { countCryptoThreads } from "../settings/crypto-settings.ts";
import { allocateSharedMemory, openSharedMemory } from "../shared-memory/shared-memory.ts";
import type { StartedServer, StartOptions } from "../start-app.ts";
import type { FromWorker, StartFailure, ToWorker, WorkerInput } from "./messages.ts";

/** Deaths in a minute after which the server gives up: a worker that dies at once would be restarted for ever. */
const maxDeaths = 5;
const minuteMs = 60_000;
/** Milliseconds that a worker has to report its metrics. */
const dumpMs = 2000;
/** Milliseconds between polls of the workers, and polls without a sign of life after which one is replaced. */
const defaultPollIntervalMs = 1000;
const maxSilentPolls = 30;
/** Milliseconds that a worker has to end after its calls were aborted. */
const endMs = 5000;

/** A thread and its state. */
interface Running {
  readonly thread: Worker;
  /** Its last metrics. */
  dump: MetricsDump;
  isReady: boolean;
  /** The last sign of life, and the polls since then. */
  beat: number;
  silentPolls: number;
}

/** The times of a supervisor. */
export interface SupervisorClock {
  /** Milliseconds between polls of the workers. */
  readonly pollIntervalMs?: number | undefined;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs?: () => number;
}

/** Starts the workers, one after the other. @throws CliError or a system error if one cannot start */
export async function startWorkers(options: StartOptions): Promise<StartedServer> {
  const { config } = options;
  // Otherwise a second server could listen on a port of the first, because the system lets all programs of one user share it.
  const port = await findPort(config.port, config.host);
  const guard = await guardPort(port, config.host);
  const started = await new Supervisor(options, port).start().catch((error: unknown) => {
    guard.close();
    throw error;
  });
  return {
    ...started,
    close: async () => {
      await started.close();
      guard.close();
    },
  };
}

/**
 * Marks the port as taken from here on. Two servers that start at the same moment would both find the port free. The
 * name is in Linux's abstract namespace of sockets: it disappears with the process.
 */
async function guardPort(port: number, host: string): Promise<Server> {
  const guard = createServer((socket) => socket.destroy()).listen(
    `\0quantum-safe-playground ${host}:${port}`,
  );
  await once(guard, "listening");
  return guard.unref();
}

/** The workers of one server. */
export class Supervisor {
  readonly #options: StartOptions;
  readonly #port: number;
  readonly #pollIntervalMs: number;
  readonly #nowMs: () => number;
  readonly #parts;
  readonly #memory;
  readonly #running: (Running | undefined)[] = [];
  /** The counts of workers that died. */
  readonly #kept: MetricsDump[] = [];
  readonly #dumps = new Map<number, (dump: MetricsDump) => void>();
  #lastId = 0;
  #deaths: number[] = [];
  #isStopping = false;
  #polling: NodeJS.Timeout | undefined;
  #onFailure = (_cause: "event loops"): void => {};

  constructor(
    options: StartOptions,
    port: number,
    { pollIntervalMs = defaultPollIntervalMs, nowMs = () => performance.now() }: SupervisorClock = {},
  ) {
    const { config, workers } = options;
    this.#options = options;
    this.#port = port;
    this.#pollIntervalMs = pollIntervalMs;
    this.#nowMs = nowMs;
    this.#parts = allocateSharedMemory({
      workers,
      slowPlaces: countSlowPlaces(countCryptoThreads(config)),
      passwordPlaces: config.maxPasswordChecks,
    });
    // It releases the resources of dead workers, and has its own number.
    this.#memory = openSharedMemory(this.#parts, workers);
  }

  /** The thread of a worker; undefined while it is replaced. Tests end it. */
  threadOf(worker: number): Worker | undefined {
    return this.#running[worker]?.thread;
  }

  /** Starts the workers. @throws CliError or a system error if one cannot start */
  async start(): Promise<StartedServer> {
    const { workers, onOpen } = this.#options;
    try {
      const first = await this.#startWorker(0, onOpen);
      // The first one has created the store, and found the settings right.
      await Promise.all(Array.from({ length: workers - 1 }, (_, i) => this.#startWorker(i + 1)));
      this.#polling = setInterval(() => this.#poll(), this.#pollIntervalMs).unref();
      return {
        ...first,
        close: () => this.#close(),
        // Workers count theirs. This thread serves no connection.
        countUncaughtError: () => {},
        onFailure: (listener) => {
          this.#onFailure = listener;
        },
      };
    } catch (error) {
      await this.#close();
      throw error;
    }
  }

  #startWorker(worker: number, onOpen: StartOptions["onOpen"] = () => {}) {
    const { config } = this.#options;
    const workerData: WorkerInput = { worker, config, memory: this.#parts, port: this.#port };
    const thread = new Worker(findThread("workers/worker-thread.ts"), {
      workerData,
      name: `worker ${worker}`,
    });
    const running: Running = { thread, dump: [], isReady: false, beat: 0, silentPolls: 0 };
    this.#running[worker] = running;
    const { promise, resolve, reject } =
      Promise.withResolvers<Pick<StartedServer, "address" | "cryptoVersion">>();
    const receive = (message: FromWorker): void => {
      if (message.kind === "opened") onOpen(message.routes);
      else if (message.kind === "failed") reject(toError(message.failure));
      else if (message.kind === "metrics dump") {
        running.dump = message.dump;
        this.#dumps.get(message.id)?.(message.dump);
      } else if (message.kind === "expose metrics") this.#expose(running, message.id).catch(() => {});
      else {
        running.isReady = true;
        this.#connect(worker);
        resolve(message);
      }
    };
    thread.on("message", receive);
    // The thread ends after that.
    thread.on("error", (error) => this.#options.logger.fatal({ err: error, worker }, "an event loop failed"));
    thread.on("exit", (code) => {
      reject(new Error(`an event loop ended with ${code} while it started`));
      this.#end(worker, running, code);
    });
    return promise;
  }

  /** Connects a worker that is ready with the home of services with state, or the home with all others. */
  #connect(worker: number): void {
    for (const other of this.#running.keys()) {
      const [home, guest] = [this.#running[0], this.#running[worker === 0 ? other : worker]];
      const isPair = worker === 0 ? other !== 0 : other === 0;
      if (!isPair || !home?.isReady || !guest?.isReady) continue;
      const { port1, port2 } = new MessageChannel();
      post(home, { kind: "bridge", port: port1 }, [port1]);
      post(guest, { kind: "bridge", port: port2 }, [port2]);
    }
  }

  /** Cleans up after a worker, and replaces one that died. */
  #end(worker: number, ended: Running, code: number): void {
    this.#running[worker] = undefined;
    this.#memory.release(worker);
    if (this.#isStopping || !ended.isReady) return;
    this.#kept.push(keepCounts(ended.dump));
    const now = this.#nowMs();
    this.#deaths = [...this.#deaths.filter((at) => now - at < minuteMs), now];
    const { logger } = this.#options;
    if (this.#deaths.length > maxDeaths) {
      logger.fatal(
        { worker, code },
        `${this.#deaths.length} event loops failed within a minute; the server stops`,
      );
      this.#giveUp();
      return;
    }
    logger.error({ worker, code }, "an event loop ended; another one takes its place");
    this.#startWorker(worker).catch((error: unknown) => {
      if (this.#isStopping) return;
      logger.fatal({ err: error, worker }, "an event loop cannot be replaced; the server stops");
      this.#giveUp();
    });
  }

  #giveUp(): void {
    const end = (): void => this.#onFailure("event loops");
    this.#close().then(end, end);
  }

  /** Ends workers whose event loop is stuck. It counts polls, not time, because a pause of the machine stops both. */
  #poll(): void {
    for (const [worker, running] of this.#running.entries()) {
      if (running === undefined || !running.isReady) continue;
      const beat = this.#memory.heartbeat.read(worker);
      running.silentPolls = beat === running.beat ? running.silentPolls + 1 : 0;
      running.beat = beat;
      if (running.silentPolls !== maxSilentPolls) continue;
      const seconds = (maxSilentPolls * this.#pollIntervalMs) / 1000;
      this.#options.logger.fatal({ worker }, `an event loop has stood still for ${seconds} seconds`);
      running.thread.terminate().catch(() => {});
    }
  }

  /** Sends a worker the metrics of all of them. */
  async #expose(asking: Running, id: number): Promise<void> {
    const all = this.#running.filter((one) => one?.isReady) as Running[];
    await Promise.all(all.map((one) => this.#refresh(one)));
    const exposition = await joinMetrics([...all.map(({ dump }) => dump), ...this.#kept]);
    post(asking, { kind: "metrics", id, exposition });
  }

  /** Asks a worker for its metrics. One that is too busy, or ends, keeps those that it had. */
  async #refresh(running: Running): Promise<void> {
    this.#lastId += 1;
    const id = this.#lastId;
    const { promise, resolve } = Promise.withResolvers<MetricsDump>();
    this.#dumps.set(id, resolve);
    const timer = setTimeout(() => resolve(running.dump), dumpMs);
    post(running, { kind: "dump metrics", id });
    running.dump = await promise;
    clearTimeout(timer);
    this.#dumps.delete(id);
  }

  async #close(): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#polling);
    const maxMs = this.#options.config.maxDrainMs + endMs;
    const stop = async (one: Running): Promise<void> => {
      const ended = once(one.thread, "exit");
      if (one.isReady) post(one, { kind: "stop" });
      else await one.thread.terminate();
      const isLate = await Promise.race([ended.then(() => false), wait(maxMs, true, { ref: false })]);
      if (isLate) await one.thread.terminate();
    };
    const [home, ...others] = this.#running;
    const stopping = home && stop(home);
    await Promise.all(others.map((one) => one && stop(one)));
    if (home !== undefined) post(home, { kind: "finish" });
    await stopping;
  }
}

function post(
  { thread }: Running,
  message: ToWorker,
  transfer: Parameters<Worker["postMessage"]>[1] = [],
): void {
  thread.postMessage(message, transfer);
}

function toError({ code, message, exitCode, stack }: StartFailure): Error {
  if (exitCode !== undefined) return new CliError(exitCode, message);
  return Object.assign(new Error(message), { code, stack });
}

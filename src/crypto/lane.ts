/**
 * Delays work until there is room for it, and serves callers in turn. It refuses a caller when the caller's own work
 * would have to wait too long, never because of the work of others.
 */
import { FairQueue } from "./fair-queue.ts";

/** The error for work that would have to wait too long. */
export class CryptoBusyError extends Error {
  /** Milliseconds until there will be room. */
  readonly retryMs: number;

  constructor(retryMs: number) {
    super("the server cannot compute all requested work in time");
    this.name = "CryptoBusy";
    this.retryMs = retryMs;
  }
}

/** The caller of the server's own work: see `LaneWork.caller`. */
export const systemCaller = "";

/** Work for a lane. */
export interface LaneWork<T> {
  /** The caller who is charged. The work of `systemCaller` is never refused and goes first. */
  readonly caller: string;
  /** Milliseconds of one thread. */
  readonly costMs: number;
  /** The longest time that the caller's work may wait, in milliseconds. */
  readonly limitMs: number;
  /** Milliseconds of head start over other callers, until the caller has used them up. */
  readonly creditMs?: number;
  /** The caller's share, as a multiple of other callers' shares; 1 if left out. */
  readonly weight?: number;
  /** Returns what aborts when the result is no longer needed. It is asked only for work that has to wait. */
  readonly signal?: (() => AbortSignal | undefined) | undefined;
  /** Runs before `run` returns if `start` has to wait. */
  readonly beforeWait?: () => void;
  /** Hands the work to the threads. */
  start(): Promise<T>;
}

/** The work of a lane that the threads have. */
export interface Handed {
  readonly count: number;
  readonly costMs: number;
}

/** The options of a lane. */
export interface LaneOptions {
  /** Whether to hand the threads more work. */
  readonly hasRoom: (handed: Handed) => boolean;
  /** Milliseconds until work starts that has `aheadMs` milliseconds of work before it. */
  readonly waitFor: (aheadMs: number) => number;
}

/** The work of one caller in a lane. */
interface Account {
  count: number;
  ms: number;
}

/** Milliseconds on the virtual clock; longer than any backlog. */
const systemCreditMs = 1e9;

/** One lane. */
export class Lane {
  readonly #options: LaneOptions;
  /** What begins each piece. Those that are no longer needed do nothing. */
  readonly #waiting = new FairQueue<() => void>();
  /** Accounts by caller, for callers that have work here. */
  readonly #accounts = new Map<string, Account>();
  readonly #handed = { count: 0, costMs: 0 };
  #waitingCount = 0;
  #waitingMs = 0;
  #refused = 0;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  /** Unfinished pieces of work. */
  get depth(): number {
    return this.#handed.count + this.#waitingCount;
  }

  /** Pieces of work that the threads have. */
  get handed(): number {
    return this.#handed.count;
  }

  /** Pieces of work that wait for the threads. */
  get waiting(): number {
    return this.#waitingCount;
  }

  /** Milliseconds of waiting work. */
  get waitingMs(): number {
    return this.#waitingMs;
  }

  /** Milliseconds of work that is waiting or handed to the threads. */
  get totalMs(): number {
    return this.#waitingMs + this.#handed.costMs;
  }

  /** Callers that have work here. */
  get callers(): number {
    return this.#accounts.size;
  }

  /** Pieces of work that were refused since the start. */
  get refused(): number {
    return this.#refused;
  }

  /** Runs a piece of work in its turn. @throws CryptoBusyError or the signal's reason, before the work starts */
  async run<T>(work: LaneWork<T>): Promise<T> {
    const account = this.#admit(work);
    account.count += 1;
    account.ms += work.costMs;
    try {
      // Waiting work goes first. It waits only while there is no room.
      if (this.#waiting.size === 0 && this.#options.hasRoom(this.#handed)) return await this.#hand(work);
      work.beforeWait?.();
      return await this.#wait(work);
    } finally {
      account.count -= 1;
      account.ms = account.count === 0 ? 0 : account.ms - work.costMs;
      if (account.count === 0) this.#accounts.delete(work.caller);
    }
  }

  /** Starts waiting work while there is room. */
  #beginWaiting(): void {
    while (this.#waiting.size > 0 && this.#options.hasRoom(this.#handed)) this.#waiting.pop()?.();
  }

  #admit({ caller, limitMs }: LaneWork<unknown>): Account {
    const known = this.#accounts.get(caller);
    if (known === undefined) {
      const account = { count: 0, ms: 0 };
      this.#accounts.set(caller, account);
      return account;
    }
    // In fair turns, no other caller gets more done before this caller's next piece than this caller does.
    const aheadMs = Math.min(this.totalMs, known.ms * this.#accounts.size);
    const waitMs = this.#options.waitFor(aheadMs);
    if (caller === systemCaller || waitMs <= limitMs) return known;
    this.#refused += 1;
    throw new CryptoBusyError(waitMs);
  }

  #wait<T>(work: LaneWork<T>): Promise<T> {
    const { caller, costMs, weight = 1 } = work;
    const creditMs = caller === systemCaller ? systemCreditMs : (work.creditMs ?? 0);
    const signal = work.signal?.();
    signal?.throwIfAborted();
    this.#waitingCount += 1;
    this.#waitingMs += costMs;
    return new Promise((resolve, reject) => {
      let isWaiting = true;
      const leave = (): void => {
        isWaiting = false;
        this.#waitingCount -= 1;
        this.#waitingMs = this.#waitingCount === 0 ? 0 : this.#waitingMs - costMs;
        signal?.removeEventListener("abort", cancel);
      };
      // It leaves at once, so that nobody waits for it. Its place in the queue is passed over in its turn.
      const cancel = (): void => {
        leave();
        reject(signal?.reason);
      };
      const begin = (): void => {
        if (!isWaiting) return;
        leave();
        resolve(this.#hand(work));
      };
      signal?.addEventListener("abort", cancel);
      this.#waiting.push(begin, { caller, costMs, creditMs, weight });
    });
  }

  async #hand<T>({ costMs, start }: LaneWork<T>): Promise<T> {
    const handed = this.#handed;
    handed.count += 1;
    handed.costMs += costMs;
    try {
      return await start();
    } finally {
      handed.count -= 1;
      handed.costMs = handed.count === 0 ? 0 : handed.costMs - costMs;
      // In the same turn of the event loop, so that newer work does not take the room of waiting work.
      this.#beginWaiting();
    }
  }
}

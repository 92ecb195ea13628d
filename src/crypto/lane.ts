/**
 * Holds back work until the threads have room for it, and serves callers in turn. It rejects a caller's work
 * if that caller's own backlog is too long, never because of other callers' work.
 */
import { FairQueue } from "./fair-queue.ts";

/** Thrown for work that would have to wait too long. */
export class CryptoBusyError extends Error {
  /** Milliseconds until there will be room. */
  readonly retryMs: number;

  constructor(retryMs: number) {
    super("the server cannot compute all requested work in time");
    this.name = "CryptoBusy";
    this.retryMs = retryMs;
  }
}

/** Caller for the server's own work; see `LaneWork.caller`. */
export const systemCaller = "";

export interface LaneWork<T> {
  /** The caller to charge. Work of `systemCaller` is never rejected and goes first. */
  readonly caller: string;
  /** Milliseconds of one thread. */
  readonly costMs: number;
  /** Maximum milliseconds that the caller's work may wait. */
  readonly limitMs: number;
  /** Head start over other callers, in milliseconds, until the caller has used it up. */
  readonly creditMs?: number;
  /** The caller's share relative to other callers; default 1. */
  readonly weight?: number;
  /**
   * Returns a signal that aborts when the result is no longer needed. Called only for work that has to wait.
   */
  readonly signal?: (() => AbortSignal | undefined) | undefined;
  /** Called before `run` returns if `start` has to wait. */
  readonly beforeWait?: () => void;
  /** Hands the work to the threads. */
  start(): Promise<T>;
}

/** Work that the threads have received and not finished. */
export interface Handed {
  readonly count: number;
  readonly costMs: number;
}

export interface LaneOptions {
  /** Whether the threads can take more work. */
  readonly hasRoom: (handed: Handed) => boolean;
  /** Estimated milliseconds until work starts that has `aheadMs` milliseconds of work before it. */
  readonly waitFor: (aheadMs: number) => number;
}

/** One caller's work in a lane. */
interface Account {
  count: number;
  ms: number;
}

/** Milliseconds on the virtual clock; longer than any backlog. */
const systemCreditMs = 1e9;

/** A queue for work of similar duration; the work queue has a quick and a slow lane. */
export class Lane {
  readonly #options: LaneOptions;
  /** Functions that start each piece of work. They do nothing for work that is no longer needed. */
  readonly #waiting = new FairQueue<() => void>();
  /** Accounts of callers with unfinished work. */
  readonly #accounts = new Map<string, Account>();
  readonly #handed = { count: 0, costMs: 0 };
  #waitingCount = 0;
  #waitingMs = 0;
  #refused = 0;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  /** Number of unfinished pieces of work. */
  get depth(): number {
    return this.#handed.count + this.#waitingCount;
  }

  /** Number of pieces handed to the threads. */
  get handed(): number {
    return this.#handed.count;
  }

  /** Number of pieces waiting for the threads. */
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

  /** Number of callers with unfinished work. */
  get callers(): number {
    return this.#accounts.size;
  }

  /** Number of pieces rejected since startup. */
  get refused(): number {
    return this.#refused;
  }

  /**
   * Runs a piece of work in its turn.
   *
   * @throws CryptoBusyError or the signal's reason, before the work starts
   */
  async run<T>(work: LaneWork<T>): Promise<T> {
    const account = this.#admit(work);
    account.count += 1;
    account.ms += work.costMs;
    try {
      // Waiting work goes first, and it waits only while there is no room.
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
    // With fair turns, no other caller gets more work done than this caller before this caller's next piece.
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
      // Cancelled work is removed from the accounts at once. Its queue entry is skipped in its turn.
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
      // In the same turn of the event loop, so that newer work cannot take the room of waiting work.
      this.#beginWaiting();
    }
  }
}

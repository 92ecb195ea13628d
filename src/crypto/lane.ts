/**
 * Holds work back until there is room for it, and gives the room to callers in turn. A caller is refused when its own
 * work would have to wait too long; the work of others never refuses it.
 */
import { FairQueue } from "./fair-queue.ts";

/** Says that work would have to wait too long. */
export class CryptoBusyError extends Error {
  /** Milliseconds after which there will be room. */
  readonly retryMs: number;

  constructor(retryMs: number) {
    super("more is asked for than can be computed in time");
    this.name = "CryptoBusy";
    this.retryMs = retryMs;
  }
}

/** The caller of the server's own work: see `LaneWork.caller`. */
export const systemCaller = "";

/** Work for a lane. */
export interface LaneWork<T> {
  /** Who is charged. The work of `systemCaller` is never refused and goes first. */
  readonly caller: string;
  /** Milliseconds that it is expected to take. */
  readonly costMs: number;
  /** Milliseconds that it takes at best: how long it keeps a thread busy for certain. */
  readonly leastMs: number;
  /** Milliseconds that the caller's work may have to wait. */
  readonly limitMs: number;
  /** Goes before the work of others, as far as its caller has not used that up. */
  readonly creditMs?: number;
  /** How many times the share of others its caller gets; 1 if left out. */
  readonly weight?: number;
  /** Ends when nobody wants the result any more: work that still waits then is not begun. */
  readonly signal?: AbortSignal | undefined;
  /** Runs before `run` returns if `start` cannot. */
  readonly beforeWait?: () => void;
  /** Hands the work to the threads. */
  start(): Promise<T>;
}

/** What the threads have of a lane. */
export interface Handed {
  readonly count: number;
  /** The sum of `leastMs`. */
  readonly leastMs: number;
}

/** What a lane is made of. */
export interface LaneOptions {
  /** Whether the threads should be handed more. */
  readonly hasRoom: (handed: Handed) => boolean;
  /** Milliseconds until work would begin that has so many milliseconds of work before it. */
  readonly waitFor: (aheadMs: number) => number;
}

/** What one caller has in a lane. */
interface Account {
  count: number;
  ms: number;
}

/** Milliseconds on the virtual clock; more than any backlog. */
const systemCreditMs = 1e9;

/** One lane. */
export class Lane {
  readonly #options: LaneOptions;
  readonly #waiting = new FairQueue<() => void>();
  /** By caller, of those that have something here. */
  readonly #accounts = new Map<string, Account>();
  readonly #handed = { count: 0, leastMs: 0 };
  #waitingMs = 0;
  #handedMs = 0;
  #refused = 0;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  /** Pieces of work that have not ended. */
  get depth(): number {
    return this.#handed.count + this.#waiting.size;
  }

  /** Pieces of work that the threads have. */
  get handed(): number {
    return this.#handed.count;
  }

  /** Pieces of work that the threads have not been handed. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Milliseconds of work that wait. */
  get waitingMs(): number {
    return this.#waitingMs;
  }

  /** Milliseconds of work that wait or that the threads have. */
  get totalMs(): number {
    return this.#waitingMs + this.#handedMs;
  }

  /** Callers that have work here. */
  get callers(): number {
    return this.#accounts.size;
  }

  /** Pieces of work that were refused since the start. */
  get refused(): number {
    return this.#refused;
  }

  /** Does a piece of work in its turn. @throws CryptoBusyError or the reason of the signal, without having done anything */
  async run<T>(work: LaneWork<T>): Promise<T> {
    const account = this.#admit(work);
    account.count += 1;
    account.ms += work.costMs;
    try {
      // Work that waits goes first; it waits only while there is no room.
      if (this.#waiting.size === 0 && this.#options.hasRoom(this.#handed)) return await this.#hand(work);
      work.beforeWait?.();
      return await this.#wait(work);
    } finally {
      account.count -= 1;
      account.ms = account.count === 0 ? 0 : account.ms - work.costMs;
      if (account.count === 0) this.#accounts.delete(work.caller);
    }
  }

  /** Begins what waits, as far as there is room. */
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
    // In turn, nobody gets more done before this caller's next piece than this caller has before it itself.
    const aheadMs = Math.min(this.totalMs, known.ms * this.#accounts.size);
    const waitMs = this.#options.waitFor(aheadMs);
    if (caller === systemCaller || waitMs <= limitMs) return known;
    this.#refused += 1;
    throw new CryptoBusyError(waitMs);
  }

  #wait<T>(work: LaneWork<T>): Promise<T> {
    const { caller, costMs, weight = 1 } = work;
    const creditMs = caller === systemCaller ? systemCreditMs : (work.creditMs ?? 0);
    this.#waitingMs += costMs;
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        this.#waitingMs = this.#waiting.size === 0 ? 0 : this.#waitingMs - costMs;
        if (work.signal?.aborted) reject(work.signal.reason);
        else resolve(this.#hand(work));
      };
      this.#waiting.push(begin, { caller, costMs, creditMs, weight });
    });
  }

  async #hand<T>({ costMs, leastMs, start }: LaneWork<T>): Promise<T> {
    const handed = this.#handed;
    handed.count += 1;
    handed.leastMs += leastMs;
    this.#handedMs += costMs;
    try {
      return await start();
    } finally {
      handed.count -= 1;
      handed.leastMs = handed.count === 0 ? 0 : handed.leastMs - leastMs;
      this.#handedMs = handed.count === 0 ? 0 : this.#handedMs - costMs;
      // In the same turn: work that comes later finds no room before work that waits.
      this.#beginWaiting();
    }
  }
}

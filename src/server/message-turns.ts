/**
 * Parses large messages one per turn. Parsing one takes tens of milliseconds, and a compressed one may arrive
 * in a few bytes. Without turns, messages that arrive together would all be parsed before any other call
 * runs.
 */
import { FairQueue } from "../crypto/fair-queue.ts";

/** Messages of at least this size wait for a turn. */
const largeBytes = 64 * 1024;
/** Bytes parsed per millisecond on a slow core, to compute client shares. */
const bytesPerMs = 50_000;

/** Allows one large message per event-loop turn. Clients share the turns by bytes. */
export class MessageTurns {
  readonly #waiting = new FairQueue<() => void>();
  #isScheduled = false;

  /** Waits for the turn of a message; undefined for a small one, which needs none. */
  take(client: string, bytes: number): Promise<void> | undefined {
    if (bytes < largeBytes) return undefined;
    return new Promise((resolve) => {
      this.#waiting.push(resolve, { caller: client, costMs: bytes / bytesPerMs });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.size === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#waiting.pop()?.();
      this.#schedule();
    });
  }
}

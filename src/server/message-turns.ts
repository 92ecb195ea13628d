/**
 * Gives large messages turns. To parse one takes tens of milliseconds, and one that is compressed may have come in a few
 * bytes. Without turns, those that arrive together would all be parsed before any other call.
 */
import { FairQueue } from "../crypto/fair-queue.ts";

/** A message of at least this size needs a turn. */
const largeBytes = 64 * 1024;
/** Bytes that are parsed in a millisecond on a slow core, for the shares of clients. */
const bytesPerMs = 50_000;

/** The turns of one server: one large message in each turn of the event loop. Clients share them by bytes. */
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

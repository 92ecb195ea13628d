/**
 * Spreads small pieces of work over turns of the event loop, so that a few busy callers do not delay the
 * others.
 */
import { FairQueue } from "./fair-queue.ts";

/**
 * Waits until a piece of work may start; undefined if it may start at once.
 *
 * @param caller waiting callers are served in turn; without names, all work belongs to one caller
 * @param costMs milliseconds of one thread, to compute the shares of the callers; default: all pieces cost the same
 */
export type TakeTurn = (caller?: string, costMs?: number) => Promise<void> | undefined;

/**
 * Creates a scheduler for small pieces of work.
 *
 * @param perTurn pieces to start per turn of the event loop
 */
export function createLoopTurns(perTurn: number): TakeTurn {
  const waiting = new FairQueue<() => void>();
  let left = perTurn;
  const begin = (): void => {
    left = perTurn;
    while (left > 0 && waiting.size > 0) {
      left -= 1;
      waiting.pop()?.();
    }
    if (left < perTurn) setImmediate(begin);
  };
  return (caller = "", costMs = 1) => {
    if (left === perTurn) setImmediate(begin);
    if (left === 0) return new Promise((resolve) => waiting.push(resolve, { caller, costMs }));
    left -= 1;
    return undefined;
  };
}

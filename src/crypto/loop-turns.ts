/**
 * Spreads small pieces of work over turns of the event loop, so that a few busy callers do not delay the
 * others.
 */
import { FairQueue } from "./fair-queue.ts";

/** Waits until a piece of work may start; undefined if it may start at once. */
export type TakeTurn = () => Promise<void> | undefined;

/**
 * Creates a scheduler for small pieces of work.
 *
 * @param perTurn pieces to start per turn of the event loop
 * @param callerOf returns the caller of the current piece, so that waiting callers are served in turn;
 *   without it, all pieces belong to one caller
 */
export function createLoopTurns(perTurn: number, callerOf: () => string = () => ""): TakeTurn {
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
  return () => {
    if (left === perTurn) setImmediate(begin);
    if (left === 0) return new Promise((resolve) => waiting.push(resolve, { caller: callerOf(), costMs: 1 }));
    left -= 1;
    return undefined;
  };
}

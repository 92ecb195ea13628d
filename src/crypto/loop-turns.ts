/** Spreads small pieces of work over turns of the event loop, so that much work of few callers does not hold up the others. */
import { FairQueue } from "./fair-queue.ts";

/** Waits until a piece of work may begin; undefined if it may at once. */
export type TakeTurn = () => Promise<void> | undefined;

/**
 * Creates turns.
 *
 * @param perTurn pieces that begin in one turn of the event loop
 * @param callerOf names the caller of the current piece: those that wait take turns. Left out, all are of one caller
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

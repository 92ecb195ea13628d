/** Collects errors that nobody caught, in place of vitest: each of them would have ended the real program. */
import { onTestFinished } from "vitest";

/**
 * @param describe adds what the test knows about an error
 * @returns a list that grows until the test ends
 */
export function collectUncaught(describe = (error: unknown): unknown => error): readonly unknown[] {
  const uncaught: unknown[] = [];
  for (const event of ["uncaughtException", "unhandledRejection"]) {
    const collect = (error: unknown): void => void uncaught.push(describe(error));
    // The listeners of vitest.
    const previous = process.rawListeners(event);
    process.removeAllListeners(event);
    process.on(event, collect);
    onTestFinished(() => {
      process.off(event, collect);
      for (const listener of previous) process.on(event, listener as () => void);
    });
  }
  return uncaught;
}

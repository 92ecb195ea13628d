/** Ends what a test has opened. */
import { afterAll } from "vitest";

/** What runs something at the end: of one test with `onTestFinished`, of a suite with `endAfterAll`. */
export type AtEnd = (end: () => void | Promise<void>) => void;

/**
 * For what a `beforeAll` opens: ends it after all tests of the suite that calls this, the last first. Inside of a
 * `beforeAll`, `afterAll` has no effect.
 */
export function endAfterAll(): AtEnd {
  const ends: (() => void | Promise<void>)[] = [];
  afterAll(async () => {
    for (const end of ends) await end();
  });
  return (end) => void ends.unshift(end);
}

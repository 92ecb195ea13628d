/** Cleans up what a test has opened. */
import { afterAll } from "vitest";

/** Registers a cleanup: of one test with `onTestFinished`, of a suite with `endAfterAll`. */
export type AtEnd = (end: () => void | Promise<void>) => void;

/**
 * Cleans up after `beforeAll`: runs after all tests of the calling suite, in reverse order. `afterAll` itself has no
 * effect inside a `beforeAll`.
 */
export function endAfterAll(): AtEnd {
  const ends: (() => void | Promise<void>)[] = [];
  afterAll(async () => {
    for (const end of ends) await end();
  });
  return (end) => void ends.unshift(end);
}

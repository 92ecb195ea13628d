/** The tests of a page of documentation: one for each thing that its reader does. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { makeTemporaryDirectory } from "../temporary-directory.ts";
import {
  follow,
  isAsPrinted,
  listMissing,
  makeCheckout,
  type Outcome,
  readSteps,
  type Surroundings,
} from "./readme-page.ts";

/** Milliseconds that a whole page may take on a busy machine. */
const timeout = 600_000;

/**
 * Has a reader follow the page once, and makes a test of each step.
 *
 * @param prepare makes the folder that the reader works in, from an empty one; a checkout by default
 */
export function testSteps(
  page: string,
  surroundings: () => Surroundings | Promise<Surroundings>,
  prepare: (directory: string) => string = makeCheckout,
): void {
  const steps = readSteps(page);
  const missing = listMissing(steps);
  const checkout = makeTemporaryDirectory(afterAll);
  let outcomes: (Outcome | undefined)[] = [];
  beforeAll(async () => {
    outcomes = await follow(prepare(checkout), steps, missing, await surroundings());
  }, timeout);

  for (const [i, { name, printed }] of steps.entries()) {
    const needs = missing[i] ?? [];
    it.skipIf(needs.length > 0)(needs.length > 0 ? `${name} (needs ${needs.join(", ")})` : name, () => {
      expect(outcomes[i]).toMatchObject({ code: 0, complaints: [] });
      const stdout = outcomes[i]?.stdout ?? "";
      // A difference shows both; a page that says nothing of the output is content with any.
      expect(isAsPrinted(stdout, printed ?? "…") ? printed : stdout).toBe(printed);
    });
  }
}

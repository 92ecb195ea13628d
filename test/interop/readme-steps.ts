/** The tests of a page of documentation: one for each thing that its reader does. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import {
  follow,
  isAsPrinted,
  isGitMissing,
  listMissing,
  listStrayFiles,
  makeCheckout,
  type Outcome,
  readSteps,
  type Step,
  type Surroundings,
} from "./readme-page.ts";

/** Milliseconds that a whole page may take on a busy machine. */
const timeout = 600_000;

/** How a page is followed. */
export interface PageTest {
  readonly surroundings: () => Surroundings | Promise<Surroundings>;
  /** Which steps can be taken again in the same store; all if it is left out. */
  readonly isRepeatable?: (step: Step) => boolean;
  /** Follows the page in an empty folder, and once; otherwise in a checkout. */
  readonly isWithoutCheckout?: boolean;
}

/**
 * Has a reader follow the page in a new store, and another one after that in the same store and a checkout of its own.
 * Makes a test of each step of either.
 */
export function testSteps(page: string, pageTest: PageTest): void {
  const { surroundings, isRepeatable = () => true, isWithoutCheckout = false } = pageTest;
  const steps = readSteps(page);
  const first = makeTemporaryDirectory(afterAll);
  if (isWithoutCheckout) {
    testReader(steps, () => first, surroundings, { isCheckout: false });
    return;
  }
  describe("in a new store", () => {
    testReader(steps, () => makeCheckout(first), surroundings);
  });
  const repeatable = steps.filter(isRepeatable);
  if (repeatable.length === 0) return;
  describe("in a store that was used", () => {
    const second = makeTemporaryDirectory(afterAll);
    testReader(repeatable, () => makeCheckout(second, join(first, "data")), surroundings);
  });
}

/** Has a reader follow the page of an extension, once. @param folder that of its tests */
export function testExtensionPage(folder: string): void {
  const page = readFileSync(join(folder, "../README.md"), "utf8");
  describe("who does what the page shows, as printed but for the ports,", () => {
    testSteps(page, { surroundings: () => ({}), isRepeatable: () => false });
  });
}

function testReader(
  steps: readonly Step[],
  openCheckout: () => string,
  surroundings: PageTest["surroundings"],
  { isCheckout } = { isCheckout: true },
): void {
  const missing = listMissing(steps);
  let outcomes: (Outcome | undefined)[] = [];
  let strayFiles: string[] = [];
  beforeAll(async () => {
    const checkout = openCheckout();
    outcomes = await follow(checkout, steps, missing, await surroundings());
    if (isCheckout && !isGitMissing) strayFiles = listStrayFiles(checkout);
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

  if (!isCheckout) return;
  it.skipIf(isGitMissing)(`leaves no file that git shows${isGitMissing ? " (needs git)" : ""}`, () => {
    expect(strayFiles).toEqual([]);
  });
}

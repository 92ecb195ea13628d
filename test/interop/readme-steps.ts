/** Tests for a page of documentation: one for each step of its reader. */
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

/** Time limit for a whole page on a busy machine, in milliseconds. */
const timeout = 600_000;

/** How to follow a page. */
export interface PageTest {
  readonly surroundings: () => Surroundings | Promise<Surroundings>;
  /** Steps that can be repeated in the same store; all if omitted. */
  readonly isRepeatable?: (step: Step) => boolean;
  /** Follows the page once, in an empty folder; otherwise in a checkout. */
  readonly isWithoutCheckout?: boolean;
}

/**
 * Follows the page in a new store, and then again in the same store with a second checkout. Each step of either reader is
 * a test.
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
  describe("in a used store", () => {
    const second = makeTemporaryDirectory(afterAll);
    testReader(repeatable, () => makeCheckout(second, join(first, "data")), surroundings);
  });
}

/**
 * Follows the page of an extension once.
 *
 * @param folder the extension's test folder
 */
export function testExtensionPage(folder: string): void {
  const page = readFileSync(join(folder, "../README.md"), "utf8");
  describe("the page's commands, as printed except for the ports,", () => {
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
      // On a mismatch, the test shows both. If the page prints no output, any output passes.
      expect(isAsPrinted(stdout, printed ?? "…") ? printed : stdout).toBe(printed);
    });
  }

  if (!isCheckout) return;
  it.skipIf(isGitMissing)(`leaves no file that git reports${isGitMissing ? " (needs git)" : ""}`, () => {
    expect(strayFiles).toEqual([]);
  });
}

/** The migration steps, as test/store/known-steps.test.ts pins the core's steps. */
import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { listSteps } from "../../../src/database/migrations.ts";
import { tufPackage } from "../package.ts";

it.each([
  ["sqlite", { "0010-tuf": "e93d860e51c44e06", "0011-tuf-contents": "47c9e97627aa774e" }],
  ["postgres", { "0010-tuf": "5d85aeedffb8da40", "0011-tuf-contents": "9b5c62cf9647e266" }],
] as const)("the statements of released steps never change: %s", async (kind, known) => {
  const tables = await tufPackage.tables?.();
  const steps = listSteps(kind, tables === undefined ? [] : [tables]).map(([name, statements]) => {
    const text = statements.map((statement) => statement.replaceAll(/\s+/g, " ")).join(";\n");
    return [name, createHash("sha256").update(text).digest("hex").slice(0, 16)];
  });
  expect(Object.fromEntries(steps)).toEqual(known);
});

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const page = join(import.meta.dirname, "../../src/console/page");
const paths = globSync("**/*.{ts,tsx}", { cwd: page });

// Each kept story is a tree of its own, and Preact counts ids from the start in each tree.
it("the page takes no ids from Preact, which repeat in kept stories", () => {
  expect(paths).toContain("parts/fields.tsx");
  const users = paths.filter((path) => /\buseId\b.*"preact/.test(readFileSync(join(page, path), "utf8")));
  expect(users).toEqual([]);
});

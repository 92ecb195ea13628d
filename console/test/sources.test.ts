import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const page = join(import.meta.dirname, "../page");
const paths = globSync("**/*.{ts,tsx}", { cwd: page });

// Each kept story is a separate tree, and Preact counts ids from the start in each tree.
it("the page takes no ids from Preact, which repeat in kept stories", () => {
  expect(paths).toContain("parts/fields.tsx");
  const users = paths.filter((path) => /\buseId\b.*"preact/.test(readFileSync(join(page, path), "utf8")));
  expect(users).toEqual([]);
});

/** The words in all sources; for a numbered class such as "shade-3", without the number. */
const words = new Set(
  paths.flatMap((path) => readFileSync(join(page, path), "utf8").match(/[a-z][\w-]*/gi) ?? []),
);

it.each(globSync("**/*.css", { cwd: page }))("%s has no rule for an unused class or attribute", (path) => {
  const source = readFileSync(join(page, path), "utf8").replace(/\/\*[\s\S]*?\*\//g, "");
  const selectors = source.replace(/\{[^{}]*\}/g, "{}");
  const names = [...selectors.matchAll(/(?:\.|\[)([a-z][\w-]*)/gi)].map(([, name = ""]) => name);
  // Scripts set "data-theme" as dataset.theme.
  const isKnown = (name: string) =>
    [name, name.replace(/\d+$/, ""), name.replace(/^data-/, "")].some((word) => words.has(word));
  expect(names.filter((name) => !isKnown(name))).toEqual([]);
});

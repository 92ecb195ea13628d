import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const page = join(import.meta.dirname, "../page");
const paths = globSync("**/*.{ts,tsx}", { cwd: page });

// Each kept story is a tree of its own, and Preact counts ids from the start in each tree.
it("the page takes no ids from Preact, which repeat in kept stories", () => {
  expect(paths).toContain("parts/fields.tsx");
  const users = paths.filter((path) => /\buseId\b.*"preact/.test(readFileSync(join(page, path), "utf8")));
  expect(users).toEqual([]);
});

/** The words of all sources; a class that is counted, such as "shade-3", has its number left out. */
const words = new Set(
  paths.flatMap((path) => readFileSync(join(page, path), "utf8").match(/[a-z][\w-]*/gi) ?? []),
);

it.each(globSync("**/*.css", { cwd: page }))(
  "%s has no rule for a class or an attribute that nothing has",
  (path) => {
    const source = readFileSync(join(page, path), "utf8").replace(/\/\*[\s\S]*?\*\//g, "");
    const selectors = source.replace(/\{[^{}]*\}/g, "{}");
    const names = [...selectors.matchAll(/(?:\.|\[)([a-z][\w-]*)/gi)].map(([, name = ""]) => name);
    // Scripts set "data-theme" as dataset.theme.
    const isKnown = (name: string) =>
      [name, name.replace(/\d+$/, ""), name.replace(/^data-/, "")].some((word) => words.has(word));
    expect(names.filter((name) => !isKnown(name))).toEqual([]);
  },
);

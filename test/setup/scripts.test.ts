/** The npm scripts, which must work on the first try in a fresh clone that has only the machine's own Node. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const { scripts } = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"));
const lines: [name: string, line: string][] = Object.entries(scripts);
/** Scripts that npm runs before others; npm runs no scripts before these. */
const isRunFirst = ([name]: readonly string[]): boolean => name?.startsWith("pre") === true;

describe("the npm script", () => {
  it.each(lines.filter((line) => !isRunFirst(line)))(
    "%s is preceded by a script that installs Node 26",
    (name) => {
      expect(scripts[`pre${name}`]).toMatch(/^node src\/setup\.mjs( --dev)?$/);
    },
  );

  // A shell caches where it found node, and would miss the one that it has just installed.
  it.each(lines.filter(isRunFirst))("%s runs the new Node in a separate shell", (_name, line) => {
    expect(line).toMatch(/^(node src\/setup\.mjs( --dev)?|npm run --silent \w+)$/);
  });
});

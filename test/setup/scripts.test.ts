/** The npm scripts, which must work at the first try in a fresh clone, where only the machine's own Node is. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const { scripts } = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"));
const lines: [name: string, line: string][] = Object.entries(scripts);
/** npm runs these before others, and runs no script before them. */
const isRunFirst = ([name]: readonly string[]): boolean => name?.startsWith("pre") === true;

describe("the npm script", () => {
  it.each(lines.filter((line) => !isRunFirst(line)))(
    "%s has Node 26 installed by a script that npm runs before it",
    (name) => {
      expect(scripts[`pre${name}`]).toMatch(/^node src\/setup\.mjs( --dev)?$/);
    },
  );

  // A shell remembers where it found node, and would not find the one that it has just installed.
  it.each(lines.filter(isRunFirst))("%s leaves it to another shell to run the new Node", (_name, line) => {
    expect(line).toMatch(/^(node src\/setup\.mjs( --dev)?|npm run --silent \w+)$/);
  });
});

/** The list of extensions, and their folders. */
import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { extensions } from "../extensions/index.ts";

const root = join(import.meta.dirname, "../extensions");
const folders = globSync("*/", { cwd: root }).map((path) => path.replace(/[\\/]$/, ""));

describe("the list of extensions", () => {
  it("equals the folders in extensions/", () => {
    expect(extensions.map(({ name }) => name).toSorted()).toEqual(folders.toSorted());
  });

  it("has a page and tests for each", () => {
    const missing = extensions.flatMap(({ name }) =>
      ["README.md", "extension.ts", "test"]
        .map((part) => join(root, name, part))
        .filter((path) => !existsSync(path)),
    );
    expect(missing).toEqual([]);
  });
});

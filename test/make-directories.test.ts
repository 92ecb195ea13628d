import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeDirectories } from "../src/make-directories.ts";
import { runQsp } from "./cli/qsp.ts";
import { makeTemporaryDirectory } from "./support/temporary-directory.ts";

describe("makeDirectories", () => {
  it("creates missing directories for the owner alone, and lists them, deepest first", () => {
    const root = makeTemporaryDirectory();
    mkdirSync(join(root, "a"), { mode: 0o755 });
    expect(makeDirectories(join(root, "a/b/c"))).toEqual([join(root, "a/b/c"), join(root, "a/b")]);
    expect(statSync(join(root, "a/b")).mode & 0o777).toBe(0o700);
    expect(makeDirectories(join(root, "a/b/c"))).toEqual([]);
  });

  it("rejects a path through a file", () => {
    const root = makeTemporaryDirectory();
    writeFileSync(join(root, "file"), "");
    expect(() => makeDirectories(join(root, "file/b"))).toThrow("EEXIST");
  });
});

// In /proc, Node's own recursive mkdir never returns.
describe.runIf(process.platform === "linux")("where nobody can create a directory,", () => {
  it.each([
    ["store init", ["store", "init", "--data-dir", "/proc/x"]],
    ["serve", ["serve", "--port", "0", "--data-dir", "/proc/x/y"]],
    ["ca init", ["ca", "init", "--data-dir", "/proc/x"]],
    ["restore", ["restore", "/dev/null", "--data-dir", "/proc/x"]],
  ])("%s fails with one sentence that names it", { timeout: 60_000 }, async (_, args) => {
    const { code, stderr } = await runQsp(args, { cwd: makeTemporaryDirectory() });
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/^qsp: [^\n]+\n$/) });
  });
});

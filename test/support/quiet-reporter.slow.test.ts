/** The output of a test run. */
import { execFile } from "node:child_process";
import { symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { inheritedEnvironment } from "./environment.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";

const root = join(import.meta.dirname, "../..");
const vitest = join(root, "node_modules/vitest/vitest.mjs");

/** Runs tests with only these programs in PATH. */
async function runTests(programs: readonly string[], ...files: string[]): Promise<string> {
  const bin = makeTemporaryDirectory();
  for (const program of programs) {
    const { stdout } = await promisify(execFile)("sh", ["-c", `command -v ${program}`]);
    symlinkSync(stdout.trim(), join(bin, program));
  }
  const env = { ...inheritedEnvironment(), NO_COLOR: "1", PATH: `${bin}:${dirname(process.execPath)}` };
  const options = { cwd: root, env: { ...env, QSP_TEST_REQUIRE_ALL: "" } };
  const { stdout } = await promisify(execFile)(process.execPath, [vitest, "run", ...files], options);
  return stdout;
}

describe("a test run", () => {
  it("prints one line per folder, and at the end what the skipped tests need", async () => {
    const files = ["test/deploy/promtool.slow.test.ts", "test/calls/call-headers.test.ts"];
    const stdout = await runTests(["sh", "git"], ...files);
    expect(stdout).toMatch(/^ ✓ test\/calls: \d+ passed \(\d+\.\d s\)$/m);
    expect(stdout).toMatch(/^ ✓ test\/deploy: \d+ skipped \(\d+\.\d s\)$/m);
    expect(stdout).toMatch(/ Tests {2}\d+ passed \| \d+ skipped/);
    expect(stdout).toMatch(
      /\nSkipped tests: (\d+)\. They need:\n +\1 {2}promtool {2}apt-get install prometheus\s*$/,
    );
    expect(stdout.split("\n").filter((line) => line !== "").length).toBeLessThan(12);
  });
});

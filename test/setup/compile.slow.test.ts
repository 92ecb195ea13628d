/** When the program is compiled: if the build is missing or a source has changed, and not otherwise. */
import { spawnSync } from "node:child_process";
import { appendFileSync, cpSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { copySources, root } from "./copies.ts";

const timeout = 180_000;
const checkout = makeTemporaryDirectory(afterAll);
const dist = join(checkout, "dist");
const changed = join(checkout, "src/cli/verbs/keygen.ts");
const compiled = makeTemporaryDirectory(afterAll);
/** Whether the first start compiled the program. */
let isBuilt = false;

beforeAll(() => {
  copySources(checkout);
  symlinkSync(join(root, "node_modules"), join(checkout, "node_modules"));
  isBuilt = setUp();
  cpSync(dist, compiled, { recursive: true, preserveTimestamps: true });
}, timeout);

/** Each test starts with a compiled program and unchanged sources. */
beforeEach(() => {
  cpSync(join(root, "src/cli/verbs/keygen.ts"), changed, { preserveTimestamps: true });
  rmSync(dist, { recursive: true, force: true });
  cpSync(compiled, dist, { recursive: true, preserveTimestamps: true });
});

function run(script: string, ...args: string[]) {
  return spawnSync(process.execPath, [join(checkout, script), ...args], { encoding: "utf8" });
}

/**
 * Runs what npm scripts run first.
 *
 * @returns whether it compiled the program
 */
function setUp(): boolean {
  const { status, stderr } = run("src/setup.mjs");
  if (status !== 0) throw new Error(stderr);
  return stderr.includes("setup: compiled the program");
}

const listBuilds = (): string[] => readdirSync(dist).filter((name) => /^[0-9a-f]{12}$/.test(name));

describe("the compiled program", { timeout }, () => {
  it("is built only by the first start", () => {
    expect([isBuilt, setUp()]).toEqual([true, false]);
    expect(run("dist/main.js", "help").stdout).toContain("usage: qsp VERB");
  });

  it("is kept if a source was merely touched", () => {
    utimesSync(join(checkout, "src/main.ts"), new Date(), new Date());
    expect(setUp()).toBe(false);
  });

  it("is rebuilt if a source has changed, next to the build that a running server may use", () => {
    const [before = ""] = listBuilds();
    // A server of another user cannot touch its build.
    const hoursAgo = new Date(Date.now() - 3 * 3_600_000);
    utimesSync(join(dist, before), hoursAgo, hoursAgo);
    for (const text of ["changed", "again"]) {
      appendFileSync(changed, `console.log("${text}");\n`);
      expect(setUp()).toBe(true);
      expect(run("src/qsp.mjs", "help").stdout).toContain(`${text}\n`);
      expect(listBuilds()).toContain(before);
    }
    expect(listBuilds()).toHaveLength(3);
  });

  it("is rebuilt if it is damaged, and deleted once nobody has used it for hours", () => {
    const [build = ""] = listBuilds();
    rmSync(join(dist, build, "main.js"));
    expect(setUp()).toBe(true);
    const hoursAgo = new Date(Date.now() - 3 * 3_600_000);
    for (const build of listBuilds()) utimesSync(join(dist, build), hoursAgo, hoursAgo);
    appendFileSync(changed, 'console.log("again");\n');
    writeFileSync(join(dist, "inputs.json"), "{");
    expect(setUp()).toBe(true);
    expect(listBuilds()).toHaveLength(1);
    expect(run("dist/main.js", "help").stdout).toContain("again\n");
  });

  it("is not built from an invalid source, which is reported once", () => {
    appendFileSync(changed, "const = 1;\n");
    const { status, stderr } = run("src/setup.mjs");
    expect(status).toBe(1);
    expect(stderr.match(/keygen\.ts:\d+:\d+/g)).toHaveLength(1);
    expect(readdirSync(dist).filter((name) => name.startsWith("."))).toEqual([]);
  });

  it("reports in one sentence that its folder cannot be written", () => {
    rmSync(dist, { recursive: true });
    writeFileSync(dist, "");
    const { status, stderr } = run("src/setup.mjs");
    expect(status).toBe(2);
    expect(stderr).toMatch(
      /^setup: the program must be compiled, and \S+ cannot be written \(\w+\); run [^\n]+\n$/,
    );
  });
});

/** Compares the server's system calls with the filter in its systemd unit. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, it, onTestFinished } from "vitest";
import { isMissing, run } from "../interop/tools.ts";
import { callRest } from "../services/answers.ts";
import { inheritedEnvironment } from "../support/environment.ts";
import { main } from "../support/program.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { listValues, readDeployed } from "./unit-file.ts";

const missing = ["strace", "systemd-analyze"].filter(isMissing);

/** Expands a set such as @system-service to system call names. */
async function expandSet(set: string): Promise<string[]> {
  const { stdout, code } = await run("systemd-analyze", ["syscall-filter", "--no-pager", set]);
  expect(code).toBe(0);
  const names = stdout.split("\n").flatMap((line) => /^ {4}(@?\w[\w-]*)$/.exec(line)?.[1] ?? []);
  const nested = await Promise.all(
    names.map((name) => (name.startsWith("@") ? expandSet(name) : Promise.resolve([name]))),
  );
  return nested.flat();
}

/** Lists the system calls that the unit allows: sets, without those after "~". */
async function listAllowed(unit: string): Promise<ReadonlySet<string>> {
  const allowed = new Set<string>();
  for (const line of listValues(unit, "SystemCallFilter"))
    for (const set of line.replace("~", "").split(" "))
      for (const name of await expandSet(set))
        line.startsWith("~") ? allowed.delete(name) : allowed.add(name);
  return allowed;
}

/**
 * Runs the program under strace.
 *
 * @returns the names of its successful and failed system calls
 */
async function trace(
  args: readonly string[],
  whileReady?: (url: string) => Promise<void>,
): Promise<Set<string>> {
  const log = join(makeTemporaryDirectory(), "calls");
  const flags = ["-f", "-qq", "-e", "signal=none", "-o", log];
  const child = spawn("strace", [...flags, process.execPath, main, ...args], {
    env: inheritedEnvironment(),
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  const closed = once(child, "close");
  onTestFinished(() => {
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const [, url] = /ready on (\S+)$/.exec(line) ?? [];
    if (url === undefined || child.pid === undefined) continue;
    await whileReady?.(url);
    process.kill(-child.pid, "SIGTERM");
  }
  const [code] = await closed;
  expect(code).toBe(0);
  const found = readFileSync(log, "utf8").matchAll(/^\d+ +(?:<\.\.\. )?([a-z]\w*)(?:\(| resumed>)/gm);
  return new Set([...found].map(([, name = ""]) => name));
}

const needs = missing.length > 0 ? ` (needs ${missing.join(", ")})` : "";

describe.skipIf(missing.length > 0)(`the system call filter${needs}`, () => {
  it("allows everything that a server and a backup do", { timeout: 240_000 }, async () => {
    const dataDir = makeTemporaryDirectory();
    const served = await trace(["serve", "--port", "0", "--data-dir", dataDir], async (url) => {
      expect(await callRest(url, "POST /api/kms/create-key", {})).toMatchObject({ status: 200 });
      expect((await fetch(`${url}/metrics`)).status).toBe(200);
    });
    const saved = await trace(["backup", join(dataDir, "one.backup"), "--data-dir", dataDir]);
    // Otherwise, nothing was traced.
    expect([...served]).toEqual(expect.arrayContaining(["accept4", "fsync", "mmap"]));
    const allowed = await listAllowed(readDeployed("systemd/qsp.service"));
    const refused = new Set([...served, ...saved].filter((name) => !allowed.has(name)));
    // As root, SQLite passes file ownership to the database owner, but the unit does not run as root.
    if (process.geteuid?.() === 0) refused.delete("fchown");
    expect([...refused]).toEqual([]);
  });
});

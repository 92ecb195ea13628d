/** What the start of a server reports besides being ready. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, existsSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, it, onTestFinished } from "vitest";
import { findSharedDirectories } from "../../../src/cli/operator/shared-directories.ts";
import { describeSmallDisks, makeSmallDisk } from "../../faults/small-disk.ts";
import { makeSqlitePlace } from "../../support/on-both.ts";
import { main } from "../../support/program.ts";
import { type Run, runToEndHere } from "../../support/run-here.ts";
import { startServer } from "../../support/start-server.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";

const timeout = 180_000;

describe("the first start", { timeout }, () => {
  it("reports where it created a store and a master key; the next start does not", async () => {
    const dataDir = makeTemporaryDirectory();
    const [first, second] = [await startAndStop(dataDir), await startAndStop(dataDir)];
    expect(madeLines(first.stdout)).toEqual([
      `Created a new store, ${join(dataDir, "qsp.db")}.`,
      `Created a new master key, ${join(dataDir, "master.key")}: store a copy of it apart from the store.`,
    ]);
    expect(madeLines(second.stdout)).toEqual([]);
  });

  it("gives no advice for people in the systemd journal", async () => {
    // As when systemd starts a service: the variable contains the device and inode of its output.
    const inJournal = 'JOURNAL_STREAM=$(stat -Lc %d:%i /proc/$$/fd/1) exec "$@"';
    const args = [main, "serve", "--port", "0", "--data-dir", makeTemporaryDirectory()];
    const service = spawn("sh", ["-c", inJournal, "sh", process.execPath, ...args]);
    onTestFinished(() => void service.kill("SIGKILL"));
    const lines: string[] = [];
    for await (const line of createInterface(service.stdout)) {
      lines.push(line);
      if (line.includes(" is ready on ")) service.kill("SIGTERM");
    }
    expect(lines.filter((line) => line !== "" && !line.startsWith("Created "))).toEqual([
      expect.stringMatching(/^Cryptography: /),
      expect.stringMatching(/^Quantum-Safe Playground is ready on http:/),
    ]);
  });

  it("gives advice if the journal variable was merely inherited, and reports no master key of the operator", async () => {
    const env = { JOURNAL_STREAM: "8:123456789", QSP_MASTER_KEY: "0f".repeat(32) };
    const { stdout } = await startAndStop(makeTemporaryDirectory(), [], env);
    expect(stdout).toMatch(/^In a browser, open /m);
    expect(madeLines(stdout)).toEqual([expect.stringContaining("Created a new store")]);
  });

  it("creates nothing if its port is in use, and exits with 4, so that a service manager retries", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void other.close());
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const dataDir = join(makeTemporaryDirectory(), "data");
    expect(await runToEndHere(["serve", "--port", String(port), "--data-dir", dataDir])).toEqual({
      code: 4,
      stdout: "",
      stderr: `qsp: port ${port} of 127.0.0.1 is in use; choose another port with --port\n`,
    });
    expect(existsSync(dataDir)).toBe(false);
  });

  it("reports what it created even if it cannot start, because the next start does not", async () => {
    const dataDir = join(makeTemporaryDirectory(), "data");
    // A documentation address (RFC 5737), which no machine has.
    const host = "192.0.2.1";
    const args = ["serve", "--port", "0", "--host", host, "--danger-open-to-network", "--data-dir", dataDir];
    const { code, stdout, stderr } = await runToEndHere(args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`${host} is not an address`)]);
    expect(madeLines(stdout)).toHaveLength(2);
    expect(madeLines((await startAndStop(dataDir)).stdout)).toEqual([]);
  });

  it("warns of a directory in which other users can replace the master key, and only then", async () => {
    const keyDir = makeTemporaryDirectory();
    const keyFile = join(keyDir, "master.key");
    const warning = `every user of this machine can replace the files in ${keyDir}; set its mode to 0700`;
    for (const [mode, warnings] of [
      [0o770, []],
      [0o1777, []],
      [0o777, [warning]],
    ] as const) {
      chmodSync(keyDir, mode);
      expect(findSharedDirectories({ masterKey: { kind: "file", path: keyFile } })).toEqual(warnings);
    }
    const { stderr } = await startAndStop(makeTemporaryDirectory(), ["--master-key-file", keyFile]);
    const warned = stderr.split("\n").filter((line) => line.includes('"level":40'));
    expect(warned.map((line) => JSON.parse(line).msg)).toEqual([warning]);
  });
});

async function startAndStop(dataDir: string, args: readonly string[] = [], env = {}) {
  return (await startServer({ dataDir, args, env })).stop();
}

function madeLines(stdout: string): string[] {
  return stdout.split("\n").filter((line) => line.startsWith("Created "));
}

const serve = ["serve", "--port", "0"];

describe("a store that cannot be reached", { timeout }, () => {
  it.skipIf(process.getuid?.() === 0)("is not reported as missing if access is denied", async () => {
    const place = await makeSqlitePlace();
    await (await place.open()).close();
    chmodSync(place.directory, 0);
    const exit = await runToEndHere(["audit", "verify", ...place.settings]);
    chmodSync(place.directory, 0o700);
    expectRefused(exit, /cannot be read: permission denied/);
  });
});

describeSmallDisks("a store on a read-only file system", () => {
  it("is reported with the reason by a start and by commands", { timeout }, async () => {
    const disk = makeSmallDisk("16m");
    const place = await makeSqlitePlace();
    await (await place.open()).close();
    cpSync(place.directory, disk, { recursive: true });
    execFileSync("mount", ["-o", "remount,ro", disk]);
    for (const words of [
      serve,
      ["store", "verify"],
      ["audit", "verify"],
      ["backup", join(makeTemporaryDirectory(), "b")],
    ])
      expectRefused(
        await runToEndHere([...words, "--data-dir", disk]),
        /the store .*qsp\.db cannot be opened: its file system is read-only$/,
      );
  });
});

function expectRefused({ code, stdout, stderr }: Run, sentence: RegExp): void {
  const lines = stderr.split("\n").filter((line) => !/ of .* (rows|entries) /.test(line));
  expect({ code, stdout, lines }).toEqual({
    code: 2,
    stdout: "",
    lines: [expect.stringMatching(sentence), ""],
  });
  expect(lines[0]).toMatch(/^qsp: /);
}

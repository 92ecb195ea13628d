import { chownSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { readConfig } from "../../src/config.ts";
import { isMissing, run } from "../interop/tools.ts";
import { main } from "../support/program.ts";
import { runToEnd, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { deployFolder, listValues, readDeployed } from "./unit-file.ts";

/** What `systemd-analyze security` may report at most; 10 is a service without any restriction. */
const maxExposure = 2.0;
const noAnalyze = isMissing("systemd-analyze");
const noLogrotate = isMissing("logrotate");
const services = ["qsp.service", "qsp-backup.service", "qsp-verify.service"];
const timers: readonly [string, string][] = [
  ["qsp-backup.timer", "02:30:00"],
  ["qsp-verify.timer", "04:00:00"],
];

/** Copies a unit, with programs that every machine has in place of those in /opt/qsp. */
function copyUnit(directory: string, name: string): string {
  const path = join(directory, name);
  writeFileSync(path, readDeployed(`systemd/${name}`).replaceAll(/^(Exec\w+)=.*$/gm, "$1=/bin/true"));
  return path;
}

describe.skipIf(noAnalyze)(`the units of systemd${noAnalyze ? " (needs systemd-analyze)" : ""}`, () => {
  it.each(services)(`expose at most ${maxExposure.toFixed(1)} of 10: %s`, async (name) => {
    const { stdout, code } = await run("systemd-analyze", [
      ...["security", "--offline=true", "--no-pager", `--threshold=${maxExposure * 10}`],
      join(deployFolder, "systemd", name),
    ]);
    const [, exposure] = /Overall exposure level for \S+: (\d+\.\d+)/.exec(stdout) ?? [];
    expect(Number(exposure)).toBeLessThanOrEqual(maxExposure);
    expect(code).toBe(0);
  });

  it("have only directives that systemd knows", async () => {
    const directory = makeTemporaryDirectory();
    const paths = [...services, ...timers.map(([timer]) => timer)].map((name) => copyUnit(directory, name));
    const { stderr, code } = await run("systemd-analyze", ["verify", "--man=no", ...paths]);
    // Other units of the machine are not ours.
    expect(stderr.split("\n").filter((line) => line.includes("qsp"))).toEqual([]);
    expect(code).toBe(0);
  });

  it.each(timers)("start their work each day at a time that systemd can read: %s", async (timer, time) => {
    const [calendar = ""] = listValues(readDeployed(`systemd/${timer}`), "OnCalendar");
    const { stdout, code } = await run("systemd-analyze", ["calendar", "--iterations=2", calendar]);
    expect(code).toBe(0);
    expect(stdout).toContain(time);
  });
});

describe("the units of systemd", () => {
  it.each(services)("give the server only settings that it has: %s", (name) => {
    const env = Object.fromEntries(
      listValues(readDeployed(`systemd/${name}`), "Environment")
        .filter((line) => !line.startsWith("QSP_BACKUP_DAYS="))
        .map((line) =>
          line.replace("%d", "/run/credentials/qsp.service").replace("%S", "/var/lib").split("="),
        ),
    );
    expect(readConfig([], env)).toMatchObject({
      dataDir: "/var/lib/qsp",
      masterKeyFile: "/run/credentials/qsp.service/master.key",
    });
  });

  it("restrict the backup and the check as they restrict the server", () => {
    const [server, ...others] = services.map((name) => {
      const text = readDeployed(`systemd/${name}`);
      return text.slice(text.indexOf("AmbientCapabilities="), text.indexOf("UMask=0077"));
    });
    expect(server).toContain("SystemCallFilter=");
    expect(others).toEqual([server, server]);
  });

  it("let the server make no store in place of a lost one", () => {
    expect(listValues(readDeployed("systemd/qsp.service"), "Environment")).toContain(
      "QSP_REQUIRE_STORE=true",
    );
  });

  it("let no log of systemd show the master key: no unit has it in a variable or an argument", () => {
    for (const name of services) expect(readDeployed(`systemd/${name}`)).not.toMatch(/QSP_MASTER_KEY=/);
  });
});

/** The shell command of a unit, with the programs of the tests. */
function readCommand(name: string): string {
  const [start = ""] = listValues(readDeployed(`systemd/${name}`), "ExecStart");
  const [, command = ""] = /^\/bin\/sh -\w+ '(.*)'$/.exec(start) ?? [];
  return command
    .replaceAll("/opt/qsp/node_modules/.bin/node", process.execPath)
    .replaceAll("/opt/qsp/dist/main.js", main)
    .replaceAll("$$", "$")
    .replaceAll("%%", "%");
}

describe("the check of the store", { timeout: 180_000 }, () => {
  const check = (dataDir: string) =>
    run("env", [`QSP_DATA_DIR=${dataDir}`, "/bin/sh", "-uc", readCommand("qsp-verify.service")]);
  const makeStore = async () => {
    const dataDir = makeTemporaryDirectory();
    await runToEnd(["store", "init", "--data-dir", dataDir]);
    await runToEnd(["client", "add", "one", "--data-dir", dataDir]);
    return dataDir;
  };

  it("finds a whole store, its two logs and its chain valid, while a server runs", async () => {
    const dataDir = await makeStore();
    const server = await startServer({ dataDir, args: ["--auth", "token"] });
    onTestFinished(() => void server.stop());
    const { code, stdout } = await check(dataDir);
    expect(stdout.match(/^The .+? (?:intact|valid)/gm)).toEqual([
      "The store is intact",
      "The audit log is valid",
      "The identity log is valid",
      "The chain is valid",
    ]);
    expect(code).toBe(0);
  });

  it("fails, and makes the other checks, if one finds a fault", async () => {
    const dataDir = await makeStore();
    const database = new DatabaseSync(join(dataDir, "qsp.db"));
    database.exec("update identity_entries set key_id = 'two' where operation = 'CREATE_CLIENT'");
    database.close();
    const { code, stdout, stderr } = await check(dataDir);
    expect(stdout + stderr).toMatch(/The audit log is valid/);
    expect(stdout + stderr).not.toMatch(/The identity log is valid/);
    expect(stdout + stderr).toMatch(/The chain is valid/);
    expect(code).toBe(1);
  });
});

describe("the nightly backup", { timeout: 180_000 }, () => {
  it("fails, and leaves its file, if the master key does not open the store", async () => {
    const dataDir = makeTemporaryDirectory();
    await runToEnd(["store", "init", "--data-dir", dataDir]);
    await runToEnd(["client", "add", "one", "--data-dir", dataDir]);
    writeFileSync(join(dataDir, "master.key"), `${"0f".repeat(32)}\n`);
    const directory = makeTemporaryDirectory();
    const { code, stderr } = await run("env", [
      ...["-C", directory, `QSP_DATA_DIR=${dataDir}`, "/bin/sh", "-ec", readCommand("qsp-backup.service")],
    ]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("does not open it") });
    expect(readdirSync(directory)).toEqual([expect.stringMatching(/^qsp-\d{8}T\d{6}Z\.backup$/)]);
  });
});

const isRoot = process.geteuid?.() === 0;

describe.skipIf(!isRoot)(`the operator's verbs, run as root${isRoot ? "" : " (needs root)"},`, () => {
  it("leave the files of the store to the user of the server", async () => {
    const user = 65_534;
    const dataDir = makeTemporaryDirectory();
    const args = ["--data-dir", dataDir];
    expect(await runToEnd(["store", "init", ...args])).toMatchObject({ code: 0 });
    expect(await runToEnd(["client", "add", "one", ...args])).toMatchObject({ code: 0 });
    for (const path of [dataDir, ...readdirSync(dataDir).map((name) => join(dataDir, name))])
      chownSync(path, user, user);
    // Holds the store open, as a verb does while it works, with the journal beside it.
    const server = await startServer({ dataDir, args: ["--auth", "token"] });
    onTestFinished(() => void server.stop());
    expect(await runToEnd(["client", "add", "two", ...args])).toMatchObject({ code: 0 });
    const files = readdirSync(dataDir);
    expect(files.some((name) => name.endsWith("-wal"))).toBe(true);
    expect(files.filter((name) => statSync(join(dataDir, name)).uid !== user)).toEqual([]);
  });
});

describe.skipIf(noLogrotate)(`the file for logrotate${noLogrotate ? " (needs logrotate)" : ""}`, () => {
  it("empties a log that the server goes on writing to, and keeps the lines of before", async () => {
    const directory = makeTemporaryDirectory();
    const log = join(directory, "server.log");
    writeFileSync(log, "a line of yesterday\n");
    const { ino } = statSync(log);
    const file = join(directory, "logrotate");
    writeFileSync(file, readDeployed("logrotate/qsp").replace("/var/log/qsp/server.log", log), {
      mode: 0o644,
    });
    const yesterday = new Date(Date.now() - 2 * 86_400_000);
    utimesSync(log, yesterday, yesterday);
    const state = join(directory, "state");
    const { code, stderr } = await run("logrotate", ["--force", "--state", state, file]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(readFileSync(`${log}.1`, "utf8")).toBe("a line of yesterday\n");
    // The same file: the server still has it open.
    expect([statSync(log).ino, statSync(log).size]).toEqual([ino, 0]);
  });
});

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

/** Maximum score from `systemd-analyze security`; 10 is a service without restrictions. */
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
  it.each(services)(
    `have an exposure score of at most ${maxExposure.toFixed(1)} out of 10: %s`,
    async (name) => {
      const { stdout, code } = await run("systemd-analyze", [
        ...["security", "--offline=true", "--no-pager", `--threshold=${maxExposure * 10}`],
        join(deployFolder, "systemd", name),
      ]);
      const [, exposure] = /Overall exposure level for \S+: (\d+\.\d+)/.exec(stdout) ?? [];
      expect(Number(exposure)).toBeLessThanOrEqual(maxExposure);
      expect(code).toBe(0);
    },
  );

  it("contain only directives that systemd knows", async () => {
    const directory = makeTemporaryDirectory();
    const paths = [...services, ...timers.map(([timer]) => timer)].map((name) => copyUnit(directory, name));
    const { stderr, code } = await run("systemd-analyze", ["verify", "--man=no", ...paths]);
    // Ignore the machine's other units.
    expect(stderr.split("\n").filter((line) => line.includes("qsp"))).toEqual([]);
    expect(code).toBe(0);
  });

  it.each(timers)("run daily at a time that systemd can parse: %s", async (timer, time) => {
    const [calendar = ""] = listValues(readDeployed(`systemd/${timer}`), "OnCalendar");
    const { stdout, code } = await run("systemd-analyze", ["calendar", "--iterations=2", calendar]);
    expect(code).toBe(0);
    expect(stdout).toContain(time);
  });
});

describe("the systemd units", () => {
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

  it("restrict the backup and the check like the server", () => {
    const [server, ...others] = services.map((name) => {
      const text = readDeployed(`systemd/${name}`);
      return text.slice(text.indexOf("AmbientCapabilities="), text.indexOf("UMask=0077"));
    });
    expect(server).toContain("SystemCallFilter=");
    expect(others).toEqual([server, server]);
  });

  it("do not let the server create a store in place of a lost one", () => {
    expect(listValues(readDeployed("systemd/qsp.service"), "Environment")).toContain(
      "QSP_REQUIRE_STORE=true",
    );
  });

  it("keep the master key out of systemd logs: no unit has it in a variable or an argument", () => {
    for (const name of services) expect(readDeployed(`systemd/${name}`)).not.toMatch(/QSP_MASTER_KEY=/);
  });
});

/** A unit's shell command, with the test programs. */
function readCommand(name: string): string {
  const [start = ""] = listValues(readDeployed(`systemd/${name}`), "ExecStart");
  const [, command = ""] = /^\/bin\/sh -\w+ '(.*)'$/.exec(start) ?? [];
  return command
    .replaceAll("/opt/qsp/node_modules/.bin/node", process.execPath)
    .replaceAll("/opt/qsp/dist/main.js", main)
    .replaceAll("$$", "$")
    .replaceAll("%%", "%");
}

/** Creates a store with a client. */
async function makeStore(): Promise<string> {
  const dataDir = makeTemporaryDirectory();
  const args = ["--data-dir", dataDir];
  expect(await runToEnd(["store", "init", ...args])).toMatchObject({ code: 0 });
  expect(await runToEnd(["client", "add", "one", ...args])).toMatchObject({ code: 0 });
  return dataDir;
}

describe("the store check", { timeout: 180_000 }, () => {
  const check = (dataDir: string) =>
    run("env", [`QSP_DATA_DIR=${dataDir}`, "/bin/sh", "-uc", readCommand("qsp-verify.service")]);

  it("reports a store, its two logs and its chain as valid while a server runs", async () => {
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

  it("fails if one check finds a fault, but runs the others", async () => {
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
  it("fails but keeps its file if the master key does not open the store", async () => {
    const dataDir = await makeStore();
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
  it("leave the store's files to the server's user", async () => {
    const user = 65_534;
    const dataDir = await makeStore();
    for (const path of [dataDir, ...readdirSync(dataDir).map((name) => join(dataDir, name))])
      chownSync(path, user, user);
    // Keeps the store open with its journal, like a running verb.
    const server = await startServer({ dataDir, args: ["--auth", "token"] });
    onTestFinished(() => void server.stop());
    expect(await runToEnd(["client", "add", "two", "--data-dir", dataDir])).toMatchObject({ code: 0 });
    const files = readdirSync(dataDir);
    expect(files.some((name) => name.endsWith("-wal"))).toBe(true);
    expect(files.filter((name) => statSync(join(dataDir, name)).uid !== user)).toEqual([]);
  });
});

describe.skipIf(noLogrotate)(`the logrotate configuration${noLogrotate ? " (needs logrotate)" : ""}`, () => {
  it("truncates a log that the server keeps writing to, and keeps the earlier lines", async () => {
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

import { chownSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { readConfig } from "../../src/config.ts";
import { isMissing, run } from "../interop/tools.ts";
import { runToEnd, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { deployFolder, listValues, readDeployed } from "./unit-file.ts";

/** What `systemd-analyze security` may report at most; 10 is a service without any restriction. */
const maxExposure = 2.0;
const noAnalyze = isMissing("systemd-analyze");
const noLogrotate = isMissing("logrotate");
const services = ["qsp.service", "qsp-backup.service"];

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
    const paths = [...services, "qsp-backup.timer"].map((name) => copyUnit(directory, name));
    const { stderr, code } = await run("systemd-analyze", ["verify", "--man=no", ...paths]);
    // Other units of the machine are not ours.
    expect(stderr.split("\n").filter((line) => line.includes("qsp"))).toEqual([]);
    expect(code).toBe(0);
  });

  it("start a backup each day at a time that systemd can read", async () => {
    const [calendar = ""] = listValues(readDeployed("systemd/qsp-backup.timer"), "OnCalendar");
    const { stdout, code } = await run("systemd-analyze", ["calendar", "--iterations=2", calendar]);
    expect(code).toBe(0);
    expect(stdout).toContain("02:30:00");
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

  it("restrict the backup as they restrict the server", () => {
    const [server, backup] = services.map((name) => {
      const text = readDeployed(`systemd/${name}`);
      return text.slice(text.indexOf("AmbientCapabilities="), text.indexOf("UMask=0077"));
    });
    expect(backup).toBe(server);
  });

  it("let no log of systemd show the master key: no unit has it in a variable or an argument", () => {
    for (const name of services) expect(readDeployed(`systemd/${name}`)).not.toMatch(/QSP_MASTER_KEY=/);
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
    const server = await startServer({ dataDir });
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

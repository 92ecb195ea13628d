/** Errors for a store that exists but cannot be used: one sentence, and exit code 2, or 4 if a retry may help. */
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { describeSmallDisks, makeSmallDisk } from "../../faults/small-disk.ts";
import { makeSqlitePlace, type Place } from "../../support/on-both.ts";
import { type Run, runToEndHere } from "../../support/run-here.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";

const timeout = 180_000;
const serve = ["serve", "--port", "0"];

describe("a store without one of its tables", () => {
  it.each([
    { name: "audit verify", words: ["audit", "verify"], table: "audit_entries" },
    { name: "user list", words: ["user", "list"], table: "users" },
    {
      name: "backup",
      words: [
        "backup",
        join(
          makeTemporaryDirectory(() => {}),
          "file",
        ),
      ],
      table: "wallets",
    },
    { name: "a start", words: serve, table: "sealed_secrets" },
  ])("is reported as incomplete by $name", async ({ words, table }) => {
    const place = await makeUsed(await makeSqlitePlace());
    await place.query(`drop table ${table}`);
    expectRefused(await runToEndHere([...words, ...place.settings]), /is damaged: .*restore a backup/);
  });
});

describe("a store that cannot be reached", { timeout }, () => {
  it("is not reported as missing if the data directory is a file", async () => {
    const dataDir = join(makeTemporaryDirectory(), "file");
    writeFileSync(dataDir, "");
    expectRefused(
      await runToEndHere(["audit", "verify", "--data-dir", dataDir]),
      /cannot be read: a file is where a directory should be/,
    );
  });

  it.skipIf(process.getuid?.() === 0)("is not reported as missing if access is denied", async () => {
    const place = await makeUsed(await makeSqlitePlace());
    chmodSync(place.directory, 0);
    const exit = await runToEndHere(["audit", "verify", ...place.settings]);
    chmodSync(place.directory, 0o700);
    expectRefused(exit, /cannot be read: permission denied/);
  });
});

describeSmallDisks("a store on a read-only file system", () => {
  it("is reported with the reason by a start and by commands", { timeout }, async () => {
    const disk = makeSmallDisk("16m");
    const place = await makeUsed(await makeSqlitePlace());
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

describe("a damaged store", { timeout }, () => {
  it.each([
    { what: "is no database", damage: (file: string) => writeFileSync(file, "x".repeat(8192)) },
    { what: "is cut off", damage: (file: string) => truncateSync(file, 20_000) },
  ])("is reported, with the remedy, if the file $what", async ({ damage }) => {
    const place = await makeUsed(await makeSqlitePlace());
    damage(join(place.directory, "qsp.db"));
    for (const words of [serve, ["user", "list"], ["backup", join(makeTemporaryDirectory(), "b")]])
      expectRefused(
        await runToEndHere([...words, ...place.settings]),
        /the store .*qsp\.db is damaged: .*; restore a backup$/,
      );
  });
});

describe("a store without tables, because its disk was full", { timeout }, () => {
  it("is completed by store init", async () => {
    const { directory, settings } = await makeSqlitePlace();
    const path = join(directory, "qsp.db");
    writeFileSync(path, "", { mode: 0o600 });
    expectRefused(
      await runToEndHere(["user", "list", ...settings]),
      /does not contain a store; .*store init/,
    );
    expect(await runToEndHere(["store", "init", ...settings])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`The store ${path} is ready.\n`),
    });
    expect((await runToEndHere(["user", "list", ...settings])).code).toBe(0);
  });

  it.each([
    ["database of another program", (file: string) => new DatabaseSync(file).exec("create table t (a)")],
    ["file that is no database", (file: string) => writeFileSync(file, "x".repeat(8192))],
  ])("is not confused with a %s", async (_, make) => {
    const { directory, settings } = await makeSqlitePlace();
    const path = join(directory, "qsp.db");
    make(path);
    chmodSync(path, 0o600);
    const before = readFileSync(path);
    expectRefused(await runToEndHere(["store", "init", ...settings]), /already exists and remains unchanged/);
    expect(readFileSync(path)).toEqual(before);
  });
});

describe.runIf(process.platform === "linux")("a data directory that cannot be created", { timeout }, () => {
  it.each([
    ["where a file is", (file: string) => file, "a file is where a directory should be"],
    ["below a file", (file: string) => join(file, "a"), "a file is where a directory should be"],
    ["in /proc", () => "/proc/foo", "its file system allows no new directories"],
  ])("%s is reported with the reason and the remedy", async (_, place, reason) => {
    const file = join(makeTemporaryDirectory(), "rel.tar");
    writeFileSync(file, "");
    const dataDir = place(file);
    expect(await runToEndHere([...serve, "--data-dir", dataDir])).toEqual({
      code: 2,
      stdout: "",
      stderr: `qsp: the directory ${dataDir} cannot be created: ${reason}; choose a different directory with --data-dir\n`,
    });
  });
});

describe("a database that does not answer", { timeout }, () => {
  it("ends a start with 4, so that a service manager retries", async () => {
    // Another test may take a free port; nobody ever listens on this one.
    const url = "postgres://127.0.0.1:1/qsp";
    expectRefused(
      await runToEndHere([...serve, "--data-dir", makeTemporaryDirectory(), "--database-url", url]),
      /cannot be opened: nothing listens on 127\.0\.0\.1:\d+; start PostgreSQL, or check --database-url$/,
      4,
    );
  });
});

/** Creates a store and uses it. */
async function makeUsed(place: Place): Promise<Place> {
  await (await place.open()).close();
  return place;
}

function expectRefused({ code, stdout, stderr }: Run, sentence: RegExp, expected = 2): void {
  const lines = stderr.split("\n").filter((line) => !/ of .* (rows|entries) /.test(line));
  expect({ code, stdout, lines }).toEqual({
    code: expected,
    stdout: "",
    lines: [expect.stringMatching(sentence), ""],
  });
  expect(lines[0]).toMatch(/^qsp: /);
}

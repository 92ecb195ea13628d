import { chownSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createDraft, removeRemains } from "../../src/database/drafts.ts";
import { type Run, runToEndHere } from "../support/run-here.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const timeout = 180_000;
const digits = "0123456789abcdef";

describe("a draft", () => {
  it("leaves nothing after it is removed", () => {
    const directory = makeTemporaryDirectory();
    const draft = createDraft(join(directory, "a."), ".partial");
    for (const suffix of ["", "-wal"]) writeFileSync(draft.path + suffix, "half");
    draft.remove();
    draft.remove();
    expect(readdirSync(directory)).toEqual([]);
  });

  it("is not removed by other programs while its own runs", () => {
    const directory = makeTemporaryDirectory();
    const draft = createDraft(join(directory, "a."), ".partial");
    onTestFinished(draft.remove);
    writeFileSync(draft.path, "half");
    expect(removeRemains(`${directory}/`, ".partial")).toEqual([]);
    expect(removeRemains(join(directory, "a."), ".partial")).toEqual([]);
    expect(existsSync(draft.path)).toBe(true);
  });

  it("is removed by the next program after its own was killed", () => {
    const directory = makeTemporaryDirectory();
    const path = leaveDraft(join(directory, `a.${digits}.partial`));
    expect(removeRemains(join(directory, "b."), ".partial")).toEqual([]);
    expect(removeRemains(join(directory, "a."), ".partial")).toEqual([path]);
    expect(readdirSync(directory)).toEqual([]);
  });

  it.skipIf(process.geteuid?.() !== 0)("is removed by root if it belongs to the directory's owner", () => {
    const directory = makeTemporaryDirectory();
    const [server, other] = [65_534, 65_533];
    chownSync(directory, server, server);
    const path = leaveDraft(join(directory, `a.${digits}`));
    chownSync(`${path}.lock`, other, other);
    expect(removeRemains(join(directory, "a."))).toEqual([]);
    chownSync(`${path}.lock`, server, server);
    expect(removeRemains(join(directory, "a."))).toEqual([path]);
  });

  it("is not confused with similar names without a lock or with a link as the lock", () => {
    const directory = makeTemporaryDirectory();
    writeFileSync(join(directory, `a.${digits}.partial`), "precious");
    writeFileSync(join(directory, "a.partial.lock"), "");
    symlinkSync("a.partial.lock", join(directory, `b.${digits}.partial.lock`));
    const before = readdirSync(directory);
    expect(removeRemains(`${directory}/`, ".partial")).toEqual([]);
    expect(readdirSync(directory)).toEqual(before);
  });
});

describe("remains of a killed command are removed, and named, by the next run of", { timeout }, () => {
  it("qsp backup, even with a different file name", async () => {
    const dataDir = await makeStore();
    const directory = makeTemporaryDirectory();
    const left = leaveDraft(join(directory, `monday.${digits}.partial`));
    expect(await runToEndHere(["backup", join(directory, "tuesday"), "--data-dir", dataDir])).toEqual(
      removing(left),
    );
    expect(readdirSync(directory)).toEqual(["tuesday"]);
  });

  it("qsp restore, above a directory that the killed run created", async () => {
    const dataDir = await makeStore();
    const directory = makeTemporaryDirectory();
    const backup = join(makeTemporaryDirectory(), "backup");
    await runToEndHere(["backup", backup, "--data-dir", dataDir]);
    const left = join(directory, `qsp-restore-${digits}`);
    mkdirSync(left);
    leaveDraft(join(left, "qsp.db"));
    writeFileSync(`${left}.lock`, "");
    const restored = join(directory, "restored");
    mkdirSync(restored);
    expect(await runToEndHere(["restore", backup, "--data-dir", restored])).toEqual(removing(left));
    expect(readdirSync(directory)).toEqual(["restored"]);
    expect(readdirSync(restored).filter((name) => name.startsWith("qsp-restore"))).toEqual([]);
  });

  it("qsp master-key rotate", async () => {
    const dataDir = await makeStore();
    const left = ["master.key", "master.key.next", "master.key.previous"].map((name) =>
      leaveDraft(join(dataDir, `${name}.${digits}`)),
    );
    expect(await runToEndHere(["master-key", "rotate", "--data-dir", dataDir])).toEqual(removing(...left));
    const keys = readdirSync(dataDir).filter((name) => name.startsWith("master.key"));
    expect(keys.sort()).toEqual(["master.key", "master.key.previous"]);
  });

  it("qsp store init, whose first run was killed while writing the master key", async () => {
    const dataDir = makeTemporaryDirectory();
    const left = leaveDraft(join(dataDir, `master.key.${digits}`));
    expect(await runToEndHere(["store", "init", "--data-dir", dataDir])).toEqual(removing(left));
    expect(readdirSync(dataDir)).not.toContain(`master.key.${digits}`);
  });
});

/** Leaves a draft as a kill does: its lock file exists, but nobody holds the lock. */
function leaveDraft(path: string): string {
  writeFileSync(path, "half");
  writeFileSync(`${path}.lock`, "");
  return path;
}

async function makeStore(): Promise<string> {
  const dataDir = makeTemporaryDirectory();
  expect(await runToEndHere(["store", "init", "--data-dir", dataDir])).toMatchObject({ code: 0 });
  return dataDir;
}

function removing(...paths: string[]): Run {
  const lines = paths.map((path) => `qsp: removed ${path}, left over from a killed run\n`).join("");
  return { code: 0, stdout: expect.any(String), stderr: expect.stringContaining(lines) };
}

import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { sqliteIn } from "../../src/database/database.ts";
import { requirePrivateStore } from "../../src/database/private-store.ts";
import { makeSqlitePlace, type Place } from "../support/on-both.ts";
import { runToEndHere } from "../support/run-here.ts";
import { storageError } from "../support/storage-error.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const isRoot = process.geteuid?.() === 0;
const otherUser = 4242;

describe.skipIf(process.platform === "win32")("a SQLite store", { timeout: 180_000 }, () => {
  it.each([0o666, 0o606, 0o602, 0o644])("is rejected with the mode %s", async (mode) => {
    const { place, path } = await makeStore();
    chmodSync(path, mode);
    await expectRefused(place, /qsp\.db can be read or changed by other users; set its mode to 0600/);
  });

  it.each([0o600, 0o660, 0o640])("is accepted with the mode %s, as on a Kubernetes volume", async (mode) => {
    const { place, path } = await makeStore();
    chmodSync(path, mode);
    chmodSync(place.directory, 0o2770);
    await (await place.open()).close();
  });

  it.each(["-wal", "-shm", "-journal", "-reserve"])(
    "is rejected if a file next to it is writable by other users: qsp.db%s",
    async (suffix) => {
      const { place, path } = await makeStore();
      writeFileSync(path + suffix, "");
      chmodSync(path + suffix, 0o666);
      await expectRefused(place, /can be read or changed by other users/);
    },
  );

  it("is rejected as a symbolic link, even to nothing", async () => {
    const { place, path } = await makeStore();
    const moved = join(makeTemporaryDirectory(), "moved.db");
    renameSync(path, moved);
    symlinkSync(moved, path);
    await expectRefused(place, /qsp\.db is a symbolic link/);

    const empty = await makeSqlitePlace();
    const target = makeTemporaryDirectory();
    symlinkSync(join(target, "planted.db"), join(empty.directory, "qsp.db"));
    await expect(empty.open()).rejects.toThrow(storageError(/qsp\.db is a symbolic link/));
    expect(readdirSync(target)).toEqual([]);
  });

  it("is accepted in a directory behind a symbolic link, as systemd creates them", async () => {
    const { place } = await makeStore();
    const link = join(makeTemporaryDirectory(), "qsp");
    symlinkSync(place.directory, link);
    await (await place.open({ location: sqliteIn(link), mode: "existing" })).close();
  });

  it.each([
    [0o777, /every user of this machine can replace the files in .*set its mode to 0700/],
    [0o702, /every user of this machine can replace the files in .*set its mode to 0700/],
    // The mode of /tmp, which must stay.
    [
      0o1777,
      /every user of this machine can create files in .*; choose a directory that only you can write to, such as /,
    ],
  ])("is rejected in a directory with mode %o", async (mode, sentence) => {
    const { place } = await makeStore();
    chmodSync(place.directory, mode);
    await expectRefused(place, sentence);
    const empty = await makeSqlitePlace();
    chmodSync(empty.directory, mode);
    await expect(empty.open()).rejects.toThrow(storageError(sentence));
    expect(readdirSync(empty.directory)).toEqual([]);
  });

  it.skipIf(!isRoot)(
    "is rejected by root if it belongs to neither root nor its directory's owner",
    async () => {
      const { place, path } = await makeStore();
      chownSync(path, otherUser, otherUser);
      await expectRefused(place, /qsp\.db belongs to another user \(ID 4242\)/);
      chownSync(place.directory, otherUser, otherUser);
      await (await place.open()).close();
    },
  );
});

describe.skipIf(process.platform === "win32")("a backup", { timeout: 180_000 }, () => {
  it("goes to a directory of its user, but not directly into one like /tmp", async () => {
    const { place } = await makeStore();
    const shared = makeTemporaryDirectory();
    chmodSync(shared, 0o1777);
    expect(await runToEndHere(["backup", join(shared, "x"), ...place.settings])).toEqual({
      code: 2,
      stdout: "",
      stderr: `qsp: every user of this machine can create files in ${shared}; choose a directory that only you can write to, such as ${join(shared, "qsp")}\n`,
    });
    expect(readdirSync(shared)).toEqual([]);
    mkdirSync(join(shared, "qsp"));
    const file = join(shared, "qsp", "x");
    expect(await runToEndHere(["backup", file, ...place.settings])).toMatchObject({ code: 0 });
  });
});

describe.skipIf(!isRoot)("a SQLite store's directory (needs root)", () => {
  it("is rejected if it belongs to another user who is not root", () => {
    const directory = makeTemporaryDirectory();
    const path = join(directory, "qsp.db");
    chmodSync(directory, 0o755);
    chownSync(directory, otherUser, otherUser);
    process.seteuid?.(65_534);
    onTestFinished(() => process.seteuid?.(0));
    expect(() => requirePrivateStore(path)).toThrow(
      storageError(/belongs to another user \(ID 4242\); if it is yours/),
    );
    process.seteuid?.(0);
    process.seteuid?.(otherUser);
    expect(() => requirePrivateStore(path)).not.toThrow();
  });
});

describe("a backup that other users can read", { timeout: 180_000 }, () => {
  it("can be restored", async () => {
    const { place } = await makeStore();
    const file = join(makeTemporaryDirectory(), "backup");
    expect(await runToEndHere(["backup", file, ...place.settings])).toMatchObject({ code: 0 });
    chmodSync(file, 0o644);
    const restored = await makeSqlitePlace();
    expect(await runToEndHere(["restore", file, ...restored.settings])).toMatchObject({ code: 0 });
  });
});

async function makeStore(): Promise<{ place: Place; path: string }> {
  const place = await makeSqlitePlace();
  await (await place.open()).close();
  return { place, path: join(place.directory, "qsp.db") };
}

async function expectRefused(place: Place, sentence: RegExp): Promise<void> {
  for (const mode of ["create", "existing"] as const)
    await expect(place.open({ mode })).rejects.toThrow(storageError(sentence));
}

import { chmodSync, chownSync, existsSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createDraft, removeRemains } from "../../src/database/drafts.ts";
import { requirePrivateStore } from "../../src/database/private-store.ts";
import { makeSqlitePlace, type Place } from "../support/on-both.ts";
import { storageError } from "../support/storage-error.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const isRoot = process.geteuid?.() === 0;
const otherUser = 4242;

describe.skipIf(process.platform === "win32")("a SQLite store", { timeout: 180_000 }, () => {
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

it.skipIf(!isRoot)(
  "a SQLite store's directory (needs root) is rejected if it belongs to another user who is not root",
  () => {
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
  },
);

async function makeStore(): Promise<{ place: Place; path: string }> {
  const place = await makeSqlitePlace();
  await (await place.open()).close();
  return { place, path: join(place.directory, "qsp.db") };
}

async function expectRefused(place: Place, sentence: RegExp): Promise<void> {
  for (const mode of ["create", "existing"] as const)
    await expect(place.open({ mode })).rejects.toThrow(storageError(sentence));
}

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
    for (const start of [`${directory}/`, join(directory, "a.")])
      expect(removeRemains(start, ".partial")).toEqual([]);
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

/** Leaves a draft as a kill does: its lock file exists, but nobody holds the lock. */
function leaveDraft(path: string): string {
  writeFileSync(path, "half");
  writeFileSync(`${path}.lock`, "");
  return path;
}

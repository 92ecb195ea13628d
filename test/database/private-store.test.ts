import { chmodSync, chownSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
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

async function makeStore(): Promise<{ place: Place; path: string }> {
  const place = await makeSqlitePlace();
  await (await place.open()).close();
  return { place, path: join(place.directory, "qsp.db") };
}

async function expectRefused(place: Place, sentence: RegExp): Promise<void> {
  for (const mode of ["create", "existing"] as const)
    await expect(place.open({ mode })).rejects.toThrow(storageError(sentence));
}

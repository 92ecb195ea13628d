/** Who owns the files that root creates: a store's server often runs as a different user. */
import { chownSync, lstatSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createPrivateFile } from "../../../src/database/owned-files.ts";
import { makeSqlitePlace } from "../../support/on-both.ts";
import { runToEndHere } from "../../support/run-here.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";

const timeout = 180_000;
const isRoot = process.geteuid?.() === 0;
const user = { uid: 4242, gid: 4243 };

/** A directory owned by another user. */
function makeForeignDirectory(): string {
  const directory = makeTemporaryDirectory();
  chownSync(directory, user.uid, user.gid);
  return directory;
}

/** The owners of everything in a directory, by name. */
function listOwners(directory: string): Record<string, { uid: number; gid: number }> {
  return Object.fromEntries(
    readdirSync(directory).map((name) => {
      const { uid, gid } = lstatSync(join(directory, name));
      return [name, { uid, gid }];
    }),
  );
}

async function runDone(...args: string[]): Promise<void> {
  expect(await runToEndHere(args)).toMatchObject({ code: 0 });
}

describe.skipIf(!isRoot)("what root creates in another user's data directory", { timeout }, () => {
  it("belongs to that user: directories, the store and the master key from store init", async () => {
    const parent = makeForeignDirectory();
    const dataDir = join(parent, "a", "b");
    await runDone("store", "init", "--data-dir", dataDir);
    expect(listOwners(parent)).toEqual({ a: user });
    expect(listOwners(join(parent, "a"))).toEqual({ b: user });
    expect(listOwners(dataDir)).toEqual({ "qsp.db": user, "master.key": user });
    expect(statSync(join(dataDir, "master.key")).mode & 0o777).toBe(0o600);
  });

  it("belongs to that user: the store from restore", async () => {
    const place = await makeSqlitePlace();
    await (await place.open()).close();
    const file = join(makeTemporaryDirectory(), "monday.backup");
    await runDone("backup", file, ...place.settings);
    // As systemd's backup unit leaves it.
    chownSync(file, user.uid, user.gid);
    const dataDir = makeForeignDirectory();
    await runDone("restore", file, "--data-dir", dataDir);
    expect(listOwners(dataDir)).toEqual({ "qsp.db": user });
  });

  it("belongs to that user: the CA and certificates, and their renewals", async () => {
    const dataDir = makeForeignDirectory();
    for (const words of [["init"], ["issue", "localhost"], ["issue", "localhost"]])
      await runDone("ca", ...words, "--data-dir", dataDir);
    expect(listOwners(dataDir)).toEqual({ tls: user });
    const owners = Object.values(listOwners(join(dataDir, "tls")));
    expect(owners).toEqual(Array(8).fill(user));
  });

  it("never changes the owner of an existing file, or of the target of a link", () => {
    const [dataDir, ofRoot] = [makeForeignDirectory(), join(makeTemporaryDirectory(), "of-root")];
    writeFileSync(ofRoot, "");
    symlinkSync(ofRoot, join(dataDir, "qsp.db"));
    writeFileSync(join(dataDir, "other.db"), "");
    for (const name of ["qsp.db", "other.db"]) createPrivateFile(join(dataDir, name));
    expect([statSync(ofRoot).uid, statSync(join(dataDir, "other.db")).uid]).toEqual([0, 0]);
  });
});

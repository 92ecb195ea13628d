import { randomBytes } from "node:crypto";
import { closeSync, existsSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ConfigError } from "../../config.ts";
import { copyStore } from "../../database/copy.ts";
import type { Database } from "../../database/database.ts";
import { sync } from "../../database/fsync.ts";
import { StoreFailureError } from "../../database/store-error.ts";
import { openDatabase } from "../../open-store.ts";
import { type MasterKeySource, nextKeyPath } from "../../secrets/master-key.ts";
import { countByMasterKey } from "../../secrets/master-keys-in-use.ts";
import { withCleanup } from "./cleanup-on-signal.ts";
import { createProgress } from "./progress.ts";
import type { StoreVerb } from "./store-verb.ts";

/** Writes a snapshot of the store into one file; servers keep running. */
export const backup: StoreVerb = {
  name: "backup",
  operands: ["FILE"],
  meaning:
    "Writes the store into a file, with its secrets sealed. The server may run. The file does not contain the master key.",
  example: "qsp backup monday.backup",
  async run({ operands: [file = ""], location, masterKey }) {
    const path = resolve(file);
    if (existsSync(path)) throw new ConfigError(`${file} already exists; name another file`);
    if (!existsSync(dirname(path))) throw new ConfigError(`the directory ${dirname(path)} does not exist`);
    const source = await openDatabase(location, "existing");
    // A unique name: other files in the directory are not ours to overwrite.
    const draft = `${path}.${randomBytes(8).toString("hex")}.partial`;
    try {
      const masterKeyIds = await withCleanup(
        () => removeStore(draft),
        async () => {
          const found = await fill(draft, source);
          sync(draft);
          renameSync(draft, path);
          sync(dirname(path));
          return found;
        },
      );
      process.stdout.write(
        `The store ${source.name} is in ${file}. It can only be read with the master key; store that key apart.\n`,
      );
      if (masterKeyIds.length > 1) process.stdout.write(describeKeys(masterKeyIds, masterKey));
    } catch (error) {
      throw explainWriting(error, file);
    } finally {
      await source.close();
    }
    return 0;
  },
};

/** Copies a store into a new file. @returns the IDs of the master keys that the copy needs */
async function fill(draft: string, source: Database): Promise<string[]> {
  const progress = createProgress("rows copied");
  // Create the file with its mode before it has content.
  closeSync(openSync(draft, "wx", 0o600));
  const target = await openDatabase({ kind: "sqlite", path: draft });
  try {
    await copyStore(source, target, progress.show);
    // Read through the writing connection: an open reader would prevent the switch of the journal mode.
    const masterKeys = await countByMasterKey(target.writer);
    // Leave one file, without a journal next to it.
    await target.writeConnection.run([{ sql: "pragma journal_mode = delete", parameters: [] }]);
    progress.end();
    return masterKeys.map(({ masterKeyId }) => masterKeyId);
  } finally {
    await target.close();
  }
}

/** Turns a fault of the file into a ConfigError; only this file is written. */
function explainWriting(error: unknown, file: string): unknown {
  if (error instanceof StoreFailureError && error.code === "FULL")
    return new ConfigError(`${file} cannot be written: its disk is full`);
  // An error of the operating system.
  if (error instanceof Error && "syscall" in error)
    return new ConfigError(`${file} cannot be written: ${error.message}`);
  return error;
}

/** Describes the keys that a backup needs if its secrets are under several master keys. */
function describeKeys(masterKeyIds: readonly string[], source: MasterKeySource): string {
  const all = `Its secrets are under ${masterKeyIds.length} master keys, ${masterKeyIds.join(" and ")}: you need all of them to read it.\n`;
  if (source.kind === "values")
    return source.next === undefined
      ? all
      : `${all}They are in QSP_MASTER_KEY and QSP_MASTER_KEY_NEXT, because a rotation is in progress.\n`;
  const next = nextKeyPath(source.path);
  return existsSync(next)
    ? `${all}They are in ${source.path} and ${next}, because a rotation is in progress.\n`
    : all;
}

/** Removes a SQLite file and the files that SQLite puts next to it. */
function removeStore(path: string): void {
  for (const suffix of ["", "-wal", "-shm", "-journal"]) rmSync(`${path}${suffix}`, { force: true });
}

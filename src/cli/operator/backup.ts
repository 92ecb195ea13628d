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

/** Writes the store as it is at one moment into one file; servers go on meanwhile. */
export const backup: StoreVerb = {
  name: "backup",
  operands: ["FILE"],
  meaning: "Writes the store into a file, still sealed; the server may run. The master key is not in it.",
  example: "qsp backup monday.backup",
  async run({ operands: [file = ""], location, masterKey }) {
    const path = resolve(file);
    if (existsSync(path)) throw new ConfigError(`${file} exists already; name another file`);
    if (!existsSync(dirname(path))) throw new ConfigError(`there is no directory ${dirname(path)}`);
    const source = await openDatabase(location, "existing");
    // A name that nothing else has: what else is beside the file belongs to somebody.
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
        `The store ${source.name} is in ${file}. It takes the master key to read it; keep that apart.\n`,
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

/** Copies a store into a new file. @returns the ids of the master keys that it takes */
async function fill(draft: string, source: Database): Promise<string[]> {
  const progress = createProgress("rows copied");
  // Before there is anything in it.
  closeSync(openSync(draft, "wx", 0o600));
  const target = await openDatabase({ kind: "sqlite", path: draft });
  try {
    await copyStore(source, target, progress.show);
    // By the connection that writes: one that only reads would keep the journal from its end.
    const masterKeys = await countByMasterKey(target.writer);
    // One file, and nothing beside it.
    await target.writeConnection.run([{ sql: "pragma journal_mode = delete", parameters: [] }]);
    progress.end();
    return masterKeys.map(({ masterKeyId }) => masterKeyId);
  } finally {
    await target.close();
  }
}

/** Makes a ConfigError of a fault of the file; nothing else is written to. */
function explainWriting(error: unknown, file: string): unknown {
  if (error instanceof StoreFailureError && error.code === "FULL")
    return new ConfigError(`${file} cannot be written: its disk is full`);
  // An error of the system's own.
  if (error instanceof Error && "syscall" in error)
    return new ConfigError(`${file} cannot be written: ${error.message}`);
  return error;
}

/** What a backup takes that was made before all secrets were under one master key. */
function describeKeys(masterKeyIds: readonly string[], source: MasterKeySource): string {
  const all = `Its secrets are under ${masterKeyIds.length} master keys, ${masterKeyIds.join(" and ")}: it takes each of them to read it.\n`;
  if (source.kind === "values")
    return source.next === undefined
      ? all
      : `${all}They are in QSP_MASTER_KEY and QSP_MASTER_KEY_NEXT, as a rotation goes on.\n`;
  const next = nextKeyPath(source.path);
  return existsSync(next) ? `${all}They are in ${source.path} and ${next}, as a rotation goes on.\n` : all;
}

/** A SQLite file and what SQLite puts beside it. */
function removeStore(path: string): void {
  for (const suffix of ["", "-wal", "-shm", "-journal"]) rmSync(`${path}${suffix}`, { force: true });
}

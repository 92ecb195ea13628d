import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readSync,
  statSync,
} from "node:fs";
import os from "node:os";
import { dirname, join, resolve } from "node:path";
import { ConfigError } from "../../config.ts";
import { copyStore, countAllRows } from "../../database/copy.ts";
import type { Database } from "../../database/database.ts";
import { diskFullError } from "../../database/disk-full.ts";
import { createDraft, type Draft, removeRemains } from "../../database/drafts.ts";
import {
  readMessage,
  StorageError,
  StoreDamagedError,
  StoreFailureError,
} from "../../database/store-error.ts";
import { logPath } from "../../database/write-ahead-log.ts";
import { openDatabase, type StoreTables } from "../../open-store.ts";
import type { MasterKeySource } from "../../secrets/master-key.ts";
import { readErrorCode, saysDiskFull } from "../../system-error.ts";
import { type OnCount, withCount } from "../output/progress.ts";
import { findKeyFaults, findKeys, type KeyFault, nameKeySource, warn } from "./check-master-key.ts";
import { explainStoreFailure } from "./explain-failure.ts";
import { tellOfRemains } from "./remains.ts";
import type { StoreVerb, StoreVerbInput } from "./store-verb.ts";
import { withDraft } from "./with-draft.ts";
import { withDatabase } from "./with-store.ts";

/** The first bytes of a SQLite file (https://sqlite.org/fileformat2.html, section 1.3). */
const sqliteHeader = "SQLite format 3\0";
/** The offset of the file format version, which shows whether a write-ahead log may exist next to the file. */
const formatAt = 18;
const logFormat = 2;

/** The prefix of the temporary directory that holds a copy of the backup. */
const draftName = "qsp-restore-";

/** Creates a store from a file written by `backup`. */
export const restore: StoreVerb = {
  line: "restore FILE",
  operandFiles: { FILE: "reads" },
  meaning: "Fills a new store, on SQLite or PostgreSQL, from a qsp backup file.",
  example: "qsp restore monday.backup --data-dir ./restored",
  async run({ operands: [file = ""], config, location, masterKey, loadTables }) {
    const tables = await loadTables();
    requireBackup(file);
    const place = placeOfCopy(location, config.dataDir);
    // If a killed run created the store's directory, its copy is in the closest parent that existed before.
    for (let at = resolve(place); ; at = dirname(at)) {
      tellOfRemains(removeRemains(join(at, draftName)));
      if (at === dirname(at)) break;
    }
    const makeDraft = (): Draft => makeDirectory(place, file);
    return withDraft(makeDraft, async (directory) => {
      const source = await openCopy(file, join(directory.path, "qsp.db"), tables);
      try {
        const name = await withDatabase(tables, location, "fill", async (target) => {
          const copy = (onProgress: OnCount) => copyStore(source, target, onProgress);
          await withCount("rows copied", copy).catch((error: unknown) => {
            // The target is new, so the damage is in the backup.
            throw isDamage(error) ? backupDamaged(file) : error;
          });
          return target.name;
        });
        const left = await describeMasterKey(source, masterKey);
        return `Restored ${file} to the store ${name}.${left}`;
      } finally {
        await source.close();
      }
    });
  },
};

/**
 * Checks the file before it is copied.
 *
 * @throws ConfigError for a file that `backup` did not write
 */
function requireBackup(file: string): void {
  let isFile = false;
  let beginning = "";
  try {
    isFile = statSync(file).isFile();
    if (isFile) beginning = readBeginning(file);
  } catch (error) {
    throw new ConfigError(
      readErrorCode(error) === "ENOENT"
        ? `the file ${file} does not exist`
        : `${file} cannot be read: ${readMessage(error)}`,
    );
  }
  if (!isFile) throw new ConfigError(`${file} is not a file`);
  if (!beginning.startsWith(sqliteHeader))
    throw new ConfigError(`${file} is not a backup; name a qsp backup file`);
  // A backup has no log. A copied store may have one, with transactions that would be lost silently.
  if (beginning.charCodeAt(formatAt) === logFormat && statSync(logPath(file), ifThere)?.size)
    throw new ConfigError(
      `${file} is a store with a log next to it, not a backup; back it up first: qsp backup FILE --data-dir DIRECTORY`,
    );
}

const ifThere = { throwIfNoEntry: false } as const;

function readBeginning(file: string): string {
  const bytes = Buffer.alloc(formatAt + 1);
  const opened = openSync(file, "r");
  try {
    readSync(opened, bytes);
  } finally {
    closeSync(opened);
  }
  return bytes.toString("latin1");
}

/** Chooses where to put the copy: the store's disk has room for it; other directories may be in memory. */
function placeOfCopy(location: StoreVerbInput["location"], dataDir: string): string {
  if (location.kind === "postgres") return existsSync(dataDir) ? dataDir : os.tmpdir();
  let place = dirname(resolve(location.path));
  while (!existsSync(place)) place = dirname(place);
  return place;
}

/** Creates a directory that only its owner can access. */
function makeDirectory(place: string, file: string): Draft {
  try {
    const draft = createDraft(join(place, draftName));
    mkdirSync(draft.path, { mode: 0o700 });
    return draft;
  } catch (error) {
    throw cannotCopy(file, place, error);
  }
}

/** Opens a copy of the backup: opening a store may modify its file. */
async function openCopy(file: string, path: string, tables: StoreTables): Promise<Database> {
  try {
    copyFileSync(file, path);
    // The copy inherits the mode of the backup, which may be readable by others because its secrets are sealed,
    // and from root also its owner, usually the server's user.
    chmodSync(path, 0o600);
    if (process.geteuid?.() === 0) chownSync(path, 0, 0);
  } catch (error) {
    throw cannotCopy(file, dirname(path), error);
  }
  let source: Database | undefined;
  try {
    source = await openDatabase(tables, { kind: "sqlite", path });
    // Counting reads every table here, so that damage is reported for this file.
    if ((await countAllRows(source.reader, source.owners)) === 0)
      throw new StorageError(`the store ${file} is empty`);
    return source;
  } catch (error) {
    await source?.close();
    if (isDamage(error)) throw backupDamaged(file);
    const explained = explainStoreFailure(error, file);
    if (!(explained instanceof StorageError)) throw explained;
    // Report the operator's file, not the temporary copy.
    throw new StorageError(explained.message.replaceAll(path, file), { mayPass: explained.mayPass });
  }
}

function cannotCopy(file: string, place: string, error: unknown): Error {
  if (saysDiskFull(error)) return diskFullError(place);
  return new ConfigError(`${file} cannot be copied to ${place}: ${readMessage(error)}`);
}

function isDamage(error: unknown): boolean {
  return (
    error instanceof StoreDamagedError || (error instanceof StoreFailureError && error.code === "CORRUPT")
  );
}

function backupDamaged(file: string): StorageError {
  return new StorageError(`the backup ${file} is damaged or incomplete; use another copy of it`);
}

/** Describes what to do before a server can start on the restored store, and warns of keys that do not open it. */
async function describeMasterKey({ reader }: Database, source: MasterKeySource): Promise<string> {
  const keys = findKeys(source);
  for (const fault of await findKeyFaults(reader, keys)) warn(describeFault(fault));
  return keys.kind === "absent"
    ? `\nPut the master key of the backup into ${nameKeySource(source)} before you start the server.`
    : "";
}

function describeFault(fault: KeyFault): string {
  switch (fault.kind) {
    case "invalid":
      return fault.reason;
    case "wrong":
      return `${fault.name} does not open the restored store; replace it with the master key of the backup before you start the server`;
    case "damaged":
      return "its root key was changed outside the server; restore another backup";
    case "incomplete":
      return `${fault.secrets} of the secrets are sealed under master key ${fault.masterKeyId}, which is not available: the backup needs several master keys`;
  }
}

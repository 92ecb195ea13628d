/**
 * Temporary files and directories that a killed program leaves, and the next one removes.
 *
 * Each has a lock beside it. The kernel releases a lock when its program ends, and shows it to all containers of a
 * machine, where the same process ID can be several programs. Node has no locks of files, but SQLite has.
 */
import { randomBytes } from "node:crypto";
import { lstatSync, readdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createPrivateFile } from "./owned-files.ts";

/** A temporary file or directory of this program. */
export interface Draft {
  /** Nothing is there yet. */
  readonly path: string;
  /** Removes what is at the path. Call it also after the draft has its final name. */
  remove(): void;
}

/** SQLite keeps these beside a database. */
const suffixes = ["", "-wal", "-shm", "-journal"];
const lockSuffix = ".lock";
const uniquePart = "[0-9a-f]{16}";

/**
 * Names a temporary file or directory, such as `beginning` + 16 digits + `ending`.
 *
 * @throws the error of the system if the directory cannot be written
 */
export function createDraft(beginning: string, ending = ""): Draft {
  const path = `${beginning}${randomBytes(8).toString("hex")}${ending}`;
  createPrivateFile(`${path}${lockSuffix}`);
  // Without it, on a file system without locks, the draft stays after a kill.
  const lock = acquire(`${path}${lockSuffix}`);
  if (lock === undefined) rmSync(`${path}${lockSuffix}`, { force: true });
  return { path, remove: () => remove(path, lock) };
}

/**
 * Removes drafts whose program was killed.
 *
 * @param beginning of their paths; a path that ends with / stands for all files of that directory
 * @returns the paths that were removed
 */
export function removeRemains(beginning: string, ending = ""): string[] {
  const directory = beginning.endsWith("/") ? beginning : dirname(beginning);
  const name = beginning.endsWith("/") ? ".+\\." : RegExp.escape(basename(beginning));
  const pattern = new RegExp(`^${name}${uniquePart}${RegExp.escape(ending + lockSuffix)}$`);
  const removed: string[] = [];
  for (const lockName of list(directory).filter((one) => pattern.test(one))) {
    const path = join(directory, lockName.slice(0, -lockSuffix.length));
    if (!isOwn(`${path}${lockSuffix}`)) continue;
    const lock = acquire(`${path}${lockSuffix}`);
    if (lock === undefined) continue;
    if (suffixes.some((suffix) => lstatSync(path + suffix, { throwIfNoEntry: false }))) removed.push(path);
    remove(path, lock);
  }
  return removed;
}

function remove(path: string, lock: DatabaseSync | undefined): void {
  for (const suffix of suffixes) rmSync(`${path}${suffix}`, { recursive: true, force: true });
  if (!lock?.isOpen) return;
  lock.close();
  rmSync(`${path}${lockSuffix}`, { force: true });
}

/** @returns undefined if another program has the lock, or if there are no locks here */
function acquire(path: string): DatabaseSync | undefined {
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(path, { timeout: 0 });
    lock.exec("pragma journal_mode = memory; begin exclusive");
    return lock;
  } catch {
    lock?.close();
    return undefined;
  }
}

/** In a directory that others can write, such as /tmp, they could plant names. */
function isOwn(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isFile() === true && (process.geteuid === undefined || found.uid === process.geteuid());
}

function list(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

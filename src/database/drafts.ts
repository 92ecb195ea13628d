/**
 * Temporary files and directories that the next program run removes if a program is killed.
 *
 * Each has a lock file next to it. The kernel releases a lock when its program ends and enforces it across
 * containers, where one process ID can stand for several programs. Node has no file locks, but SQLite does.
 */
import { randomBytes } from "node:crypto";
import { lstatSync, readdirSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createPrivateFile } from "./owned-files.ts";

export interface Draft {
  /** Does not exist yet. */
  readonly path: string;
  /** Removes whatever is at the path. Also call it after renaming the draft to its final name. */
  remove(): void;
}

/** Suffixes of the files that SQLite keeps next to a database. */
const suffixes = ["", "-wal", "-shm", "-journal"];
const lockSuffix = ".lock";
const uniquePart = "[0-9a-f]{16}";

/**
 * Reserves a name for a temporary file or directory: `beginning` + 16 digits + `ending`.
 *
 * @throws the system error if the directory is not writable
 */
export function createDraft(beginning: string, ending = ""): Draft {
  const path = `${beginning}${randomBytes(8).toString("hex")}${ending}`;
  createPrivateFile(`${path}${lockSuffix}`);
  // Without a lock, as on file systems that do not support one, the draft remains after a kill.
  const lock = acquire(`${path}${lockSuffix}`);
  if (lock === undefined) rmSync(`${path}${lockSuffix}`, { force: true });
  return { path, remove: () => remove(path, lock) };
}

/**
 * Removes drafts whose program was killed.
 *
 * @param beginning the beginning of their paths; one that ends with / matches all files in that directory
 * @returns the removed paths
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

/** @returns undefined if another program holds the lock, or locks are not supported here */
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

/**
 * In a directory that other users can write to, such as /tmp, they could plant file names. Root's own files belong to the
 * owner of their directory.
 */
function isOwn(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found?.isFile() !== true) return false;
  const user = process.geteuid?.() ?? found.uid;
  return found.uid === user || (user === 0 && found.uid === statSync(dirname(path)).uid);
}

function list(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

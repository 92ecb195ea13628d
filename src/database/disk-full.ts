/** Full disks. */
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { StorageError } from "./store-error.ts";

/** Bytes that SQLite needs at least to open a database: the index of its log has 32 KiB, and the log a few pages. */
const leastBytes = 256 * 1024;

/** Tells whether the disk of a file has almost no room for data, or for files. */
export function isDiskFull(path: string): boolean {
  try {
    const { bavail, bsize, files, ffree } = statfsSync(dirname(path));
    // Some file systems do not count their files.
    return bavail * bsize < leastBytes || (files > 0 && ffree === 0);
  } catch {
    return false;
  }
}

/** The error for a file that cannot be used because its disk is full; the caller throws it. */
export function diskFullError(path: string): StorageError {
  return new StorageError(`the disk of ${path} is full; make room on it`, { mayPass: true });
}

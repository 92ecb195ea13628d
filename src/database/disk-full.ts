/** Detects full disks. */
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { StorageError } from "./store-error.ts";

/**
 * Minimum bytes that SQLite needs to open a database: its log index takes 32 KiB, and the log a few pages.
 */
const leastBytes = 256 * 1024;

/** Returns whether a file's disk has almost no room for data or for new files. */
export function isDiskFull(path: string): boolean {
  try {
    const { bavail, bsize, files, ffree } = statfsSync(dirname(path));
    // Some file systems do not count files.
    return bavail * bsize < leastBytes || (files > 0 && ffree === 0);
  } catch {
    return false;
  }
}

/** Creates the error for a file that cannot be used because its disk is full. */
export function diskFullError(path: string): StorageError {
  return new StorageError(`the disk of ${path} is full; free some space on it`, { mayPass: true });
}

/**
 * Files and directories that root creates for another user.
 *
 * An operator runs commands as root on a store whose server runs as another user. What they create belongs to the owner
 * of the directory that it is in, or the server could not open it. SQLite does the same with the files beside a
 * database (https://sqlite.org/src/file?name=src/os_unix.c, robustFchown).
 */
import { closeSync, constants, fchownSync, openSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { makeDirectories } from "../make-directories.ts";

/** Gives a file that this program has just created to the owner of its directory, if this is root. */
export function giveToOwner(file: number, path: string): void {
  if (process.geteuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(resolve(path)));
  if (uid === 0) return;
  try {
    // By descriptor: in a directory of another user, the path may already be a link to a file of root.
    fchownSync(file, uid, gid);
  } catch {
    // Root of a container without this right. The file is as usable as without this step.
  }
}

/**
 * Creates a file that only its owner can read, if there is none.
 *
 * @throws the error of the system
 */
export function createPrivateFile(path: string): void {
  let file: number;
  try {
    // Exclusive: it follows no link, and a file that was there keeps its owner.
    file = openSync(path, "wx", 0o600);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    // Fails here, with a clear error, if it is not writable.
    return closeSync(openSync(path, "a", 0o600));
  }
  giveToOwner(file, path);
  closeSync(file);
}

/**
 * Creates a directory and those above it, for their owner alone.
 *
 * @returns the directories that were missing, the deepest first
 * @throws the error of the system
 */
export function makePrivateDirectory(path: string): string[] {
  const made = makeDirectories(path);
  // From the top: each directory takes the owner of the one that it is in.
  for (const directory of made.toReversed()) giveDirectory(directory);
  return made;
}

function giveDirectory(path: string): void {
  if (process.geteuid?.() !== 0) return;
  const directory = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  giveToOwner(directory, path);
  closeSync(directory);
}

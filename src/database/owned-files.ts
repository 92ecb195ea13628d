/**
 * Creates files and directories that root hands over to another user.
 *
 * Operators run commands as root on a store whose server runs as a different user. New files take the owner
 * of their directory, or the server could not open them. SQLite does the same for the files next to a
 * database (https://sqlite.org/src/file?name=src/os_unix.c, robustFchown).
 */
import { closeSync, constants, fchownSync, openSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { makeDirectories } from "../make-directories.ts";
import { readErrorCode } from "../system-error.ts";

/** If this process is root, gives a file that it has just created to the owner of the file's directory. */
export function giveToOwner(file: number, path: string): void {
  if (process.geteuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(resolve(path)));
  if (uid === 0) return;
  try {
    // Use the descriptor: in another user's directory, the path may have been replaced with a link to one of
    // root's files.
    fchownSync(file, uid, gid);
  } catch {
    // Root in a container without this capability. The file is usable anyway.
  }
}

/**
 * Creates a file that only its owner can read, unless the file exists.
 *
 * @throws the system error
 */
export function createPrivateFile(path: string): void {
  let file: number;
  try {
    // Exclusive mode follows no link, and an existing file keeps its owner.
    file = openSync(path, "wx", 0o600);
  } catch (error) {
    if (readErrorCode(error) !== "EEXIST") throw error;
    // Fails here, with a clear error, if the file is not writable.
    return closeSync(openSync(path, "a", 0o600));
  }
  giveToOwner(file, path);
  closeSync(file);
}

/**
 * Creates a directory and its missing parents, accessible only to their owner.
 *
 * @returns the directories that were missing, deepest first
 * @throws the system error
 */
export function makePrivateDirectory(path: string): string[] {
  const made = makeDirectories(path);
  // From the top down: each directory takes the owner of its parent.
  for (const directory of made.toReversed()) giveDirectory(directory);
  return made;
}

/** If this process is root, gives a directory that it has just created to the owner of its parent. */
export function giveDirectory(path: string): void {
  if (process.geteuid?.() !== 0) return;
  const directory = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  giveToOwner(directory, path);
  closeSync(directory);
}

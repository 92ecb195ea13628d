/** Checks that no other user can have planted a SQLite store's files, or can change them. */
import { lstatSync, type Stats, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { reservePath } from "./reserve.ts";
import { StorageError } from "./store-error.ts";
import { logPath } from "./write-ahead-log.ts";

/**
 * Mode bits for users who are neither the owner nor in the group. Kubernetes assigns the files and
 * directories of a volume to the pod's group (fsGroup), so the group bits do not count.
 */
const anyOfOthers = 0o007;
const writableByOthers = 0o002;
const sticky = 0o1000;

/**
 * Rejects a store that another user of this machine can change or may have planted.
 *
 * @throws StorageError; the system error for a directory that is missing or cannot be read
 */
export function requirePrivateStore(path: string): void {
  // Windows has no such mode bits; there, a file inherits its directory's access list.
  const user = process.platform === "win32" ? undefined : process.geteuid?.();
  if (user === undefined) return;
  const directory = dirname(resolve(path));
  const { mode, uid } = statSync(directory);
  // As in /tmp: users can replace only their own files, but can plant files that SQLite looks for next to a
  // database.
  if ((mode & writableByOthers) !== 0 && (mode & sticky) !== 0)
    throw new StorageError(
      `every user of this machine can create files in ${directory}; choose a directory that only you can write to, such as ${join(directory, "qsp")}`,
    );
  if ((mode & writableByOthers) !== 0)
    throw new StorageError(
      `every user of this machine can replace the files in ${directory}; set its mode to 0700, or choose a directory inside it`,
    );
  const owners = listTrustedOwners(user, uid);
  if (!owners.includes(uid)) throw new StorageError(`${directory} ${describeStranger(uid)}`);
  for (const file of [path, logPath(path), `${path}-shm`, `${path}-journal`, reservePath(path)]) {
    const found = lstatSync(file, { throwIfNoEntry: false });
    const problem = found && findProblem(found, owners);
    if (problem !== undefined) throw new StorageError(`${file} ${problem}`);
  }
}

/**
 * Lists the users whose files can be trusted. An operator who is root works on the store of the server's
 * user, to whom the directory belongs.
 */
function listTrustedOwners(user: number, directoryOwner: number): readonly number[] {
  return [0, user === 0 ? directoryOwner : user];
}

function describeStranger(uid: number): string {
  return `belongs to another user (ID ${uid}); if it is yours, change its owner to the user that runs the server`;
}

/**
 * Rejects another user's file, which that user can read and replace whatever its mode.
 *
 * @throws StorageError
 */
export function requireTrustedOwner(path: string): void {
  const user = process.platform === "win32" ? undefined : process.geteuid?.();
  if (user === undefined) return;
  const { uid } = statSync(path);
  if (!listTrustedOwners(user, statSync(dirname(resolve(path))).uid).includes(uid))
    throw new StorageError(`${path} ${describeStranger(uid)}`);
}

function findProblem(file: Stats, owners: readonly number[]): string | undefined {
  if (file.isSymbolicLink())
    return "is a symbolic link; replace it with the file itself, or use the directory that contains the file";
  if (!file.isFile()) return "is not a regular file";
  if (!owners.includes(file.uid)) return describeStranger(file.uid);
  if ((file.mode & anyOfOthers) !== 0) return "can be read or changed by other users; set its mode to 0600";
  return undefined;
}

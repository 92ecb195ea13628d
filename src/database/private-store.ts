/** Checks that nobody else can have put the files of a SQLite store where they are, or can change them. */
import { lstatSync, type Stats, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { reservePath } from "./reserve.ts";
import { StorageError } from "./store-error.ts";
import { logPath } from "./write-ahead-log.ts";

/**
 * The mode bits of users who are neither the owner nor in the group. Kubernetes gives the files of a volume, and its
 * directories, to a group of the pod (fsGroup), so the bits of the group do not count.
 */
const anyOfOthers = 0o007;
const writableByOthers = 0o002;
const sticky = 0o1000;

/**
 * Refuses a store that another user of the machine can change or may have planted.
 *
 * @throws StorageError, and the error of the system for a directory that is missing or cannot be read
 */
export function requirePrivateStore(path: string): void {
  // Windows has no such mode bits; there a file inherits the access list of its directory.
  const user = process.platform === "win32" ? undefined : process.geteuid?.();
  if (user === undefined) return;
  const directory = dirname(resolve(path));
  const { mode, uid } = statSync(directory);
  // As in /tmp: a user can replace only files of their own, but can plant those that SQLite keeps beside a database.
  if ((mode & writableByOthers) !== 0 && (mode & sticky) !== 0)
    throw new StorageError(
      `every user of this machine can create files in ${directory}; name a directory that is yours alone, such as ${join(directory, "qsp")}`,
    );
  if ((mode & writableByOthers) !== 0)
    throw new StorageError(
      `every user of this machine can replace the files in ${directory}; set its mode to 0700, or name a directory in it`,
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
 * Lists the users whose files a user may rely on. An operator who is root works on the store of the user that the server
 * runs as, to whom its directory belongs.
 */
function listTrustedOwners(user: number, directoryOwner: number): readonly number[] {
  return [0, user === 0 ? directoryOwner : user];
}

function describeStranger(uid: number): string {
  return `belongs to another user, with the ID ${uid}; if it is yours, give it to the user that runs the server`;
}

/**
 * Refuses a file of another user, who can read and replace it whatever its mode is.
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
  if (file.isSymbolicLink()) return "is a symbolic link; put the file itself there, or name its directory";
  if (!file.isFile()) return "is not a file";
  if (!owners.includes(file.uid)) return describeStranger(file.uid);
  if ((file.mode & anyOfOthers) !== 0) return "can be read or changed by other users; set its mode to 0600";
  return undefined;
}

/** Finds directories of secrets that other users can change. */
import { statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { StoreVerbInput } from "./store-verb.ts";

/** The mode bits by which users that are neither the owner nor in the group can create, rename and delete files. */
const writableByOthers = 0o002;
/** With this bit, as in /tmp, they can rename and delete only their own. */
const sticky = 0o1000;

/**
 * Describes the directory of the master key in one sentence if every user of the machine can write to it. The file may
 * be private, but others could replace it. A store in such a directory is refused, but Kubernetes mounts secrets like
 * this, read-only.
 */
export function findSharedDirectories({ masterKey }: Pick<StoreVerbInput, "masterKey">): string[] {
  if (masterKey.kind !== "file") return [];
  const directory = dirname(resolve(masterKey.path));
  if (!isShared(directory)) return [];
  return [`every user of this machine can replace the files in ${directory}; set its mode to 0700`];
}

function isShared(directory: string): boolean {
  // Windows has no such mode bits.
  if (process.platform === "win32") return false;
  const { mode } = statSync(directory, { throwIfNoEntry: false }) ?? { mode: 0 };
  return (mode & (writableByOthers | sticky)) === writableByOthers;
}

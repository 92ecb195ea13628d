/** Finds secret directories that other users can modify. */
import { statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { StoreVerbInput } from "./store-verb.ts";

/** The mode bit that lets users outside the owner and group create, rename and delete files. */
const writableByOthers = 0o002;
/** The sticky bit, as on /tmp: users can rename and delete only their own files. */
const sticky = 0o1000;

/**
 * Describes the master key's directory in one sentence if every user of the machine can write to it: even if the file
 * is private, other users could replace it. A store in such a directory is refused, but here a warning must do,
 * because Kubernetes mounts secrets like this, read-only.
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

/** Finds directories of secrets that other users can change. */
import { statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { StoreVerbInput } from "./store-verb.ts";

/** The mode bits by which users that are neither the owner nor in the group can create, rename and delete files. */
const writableByOthers = 0o002;

/**
 * Describes each directory of the store and the master key that every user of the machine can write to, in one
 * sentence. The files in it may be private, but others could replace them. Kubernetes gives directories of volumes to a
 * group, so the bits of the group do not count.
 */
export function findSharedDirectories({
  location,
  masterKey,
}: Pick<StoreVerbInput, "location" | "masterKey">): string[] {
  const files = [
    ...(location.kind === "sqlite" ? [location.path] : []),
    ...(masterKey.kind === "file" ? [masterKey.path] : []),
  ];
  const directories = new Set(files.map((file) => dirname(resolve(file))));
  return [...directories]
    .filter(isShared)
    .map(
      (directory) => `every user of this machine can replace the files in ${directory}; set its mode to 0700`,
    );
}

function isShared(directory: string): boolean {
  // Windows has no such mode bits.
  if (process.platform === "win32") return false;
  const { mode } = statSync(directory, { throwIfNoEntry: false }) ?? { mode: 0 };
  return (mode & writableByOthers) !== 0;
}

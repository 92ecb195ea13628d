import { statSync } from "node:fs";

/** Names the file that a path leads to now, by its device and inode. @returns undefined if there is none */
export function identify(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev} ${found.ino}`;
}

import { statSync } from "node:fs";

/**
 * Identifies the file that a path currently refers to, by device and inode.
 *
 * @returns undefined if the file does not exist
 */
export function identify(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev} ${found.ino}`;
}

import { closeSync, fsyncSync, openSync } from "node:fs";

/** Flushes a file, or the names in a directory, to disk. Does nothing on Windows. */
export function sync(path: string): void {
  // Windows cannot open a directory.
  if (process.platform === "win32") return;
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

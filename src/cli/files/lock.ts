/** The directory in which the client keeps its state, and a lock on state files. */
import os from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { makeDirectories } from "../../make-directories.ts";

/** How long to wait for another program. A change takes milliseconds. */
const timeoutMs = 10_000;

/** Returns the client's directory (XDG Base Directory Specification, "state"). */
export function stateDirectory(): string {
  return join(process.env.XDG_STATE_HOME || join(os.homedir(), ".local", "state"), "qsp");
}

/**
 * Reads and replaces a state file while no other program of this user does, so that no change is lost. Without a lock,
 * as on file systems that do not support one, the change is made anyway.
 */
export function withStateLock<T>(change: () => T): T {
  const lock = acquire();
  try {
    return change();
  } finally {
    lock?.close();
  }
}

/** Node has no file locks, but SQLite does. The kernel releases them when a program ends. */
function acquire(): DatabaseSync | undefined {
  let lock: DatabaseSync | undefined;
  try {
    makeDirectories(stateDirectory());
    lock = new DatabaseSync(join(stateDirectory(), "lock"), { timeout: timeoutMs });
    lock.exec("pragma journal_mode = memory; begin exclusive");
    return lock;
  } catch {
    lock?.close();
    return undefined;
  }
}

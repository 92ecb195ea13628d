/** Waits for a SQLite file that the server under test has locked. */
import { setImmediate } from "node:timers/promises";

/**
 * Runs statements as soon as no transaction holds the SQLite file. SQLite's own timeout would block this thread,
 * and with it the server under test, whose transaction could then never end.
 */
export async function whenUnlocked<T>(run: () => T): Promise<T> {
  for (;;)
    try {
      return run();
    } catch (error) {
      const busy = 5; // SQLITE_BUSY, sqlite.org/rescode.html
      if ((error as { errcode?: number }).errcode !== busy) throw error;
      await setImmediate();
    }
}

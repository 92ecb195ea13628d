/** Waits for a SQLite file that the server under test has locked. */
import { setImmediate } from "node:timers/promises";
import { isBusy } from "../../src/database/sqlite-file.ts";

/**
 * Runs statements as soon as no transaction holds the SQLite file. SQLite's own timeout would block this thread,
 * and with it the server under test, whose transaction could then never end.
 */
export async function whenUnlocked<T>(run: () => T): Promise<T> {
  for (;;)
    try {
      return run();
    } catch (error) {
      if (!isBusy(error)) throw error;
      await setImmediate();
    }
}

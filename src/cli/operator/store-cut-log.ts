import { copyFileSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { ConfigError } from "../../config.ts";
import { diskFullError } from "../../database/disk-full.ts";
import { sync } from "../../database/fsync.ts";
import { cutLog, isBusy, isFull } from "../../database/sqlite-file.ts";
import { StorageError } from "../../database/store-error.ts";
import { describePlace, findLogDamage, logPath } from "../../database/write-ahead-log.ts";
import { saysDiskFull } from "../../system-error.ts";
import type { StoreVerb } from "./store-verb.ts";

/** Truncates a damaged write-ahead log to the part that SQLite can read. */
export const storeCutLog: StoreVerb = {
  line: "store cut-log",
  meaning:
    "Continues without the transactions that follow damage in a SQLite store's write-ahead log. The server had\n" +
    "confirmed them, so restore a backup instead if it is newer. Stop the server first. The damaged files are kept under\n" +
    "other names. Afterwards, run store verify and audit verify.",
  async run({ location }) {
    if (location.kind !== "sqlite") throw new ConfigError("only a SQLite store has a write-ahead log");
    const { path } = location;
    const damage = findLogDamage(path);
    if (damage === undefined) return `The log ${logPath(path)} has no such damage and remains unchanged.`;
    const kept = `${path}.damaged-${new Date().toISOString().replaceAll(/\D/g, "")}`;
    try {
      copyFileSync(path, kept);
      copyFileSync(logPath(path), logPath(kept));
      for (const copy of [kept, logPath(kept), dirname(path)]) sync(copy);
      cutLog(path);
    } catch (error) {
      for (const copy of [kept, logPath(kept)]) rmSync(copy, { force: true });
      if (isFull(error) || saysDiskFull(error)) throw diskFullError(path);
      throw isBusy(error) ? new StorageError(`another program uses the store ${path}; stop it first`) : error;
    }
    return (
      `The log was damaged ${describePlace(damage)}. At least ${damage.transactions} confirmed transactions are lost; the files that contain them are ${kept} and ${logPath(kept)}.\n` +
      "Run qsp store verify, and qsp audit verify with a checkpoint that you stored elsewhere."
    );
  },
};

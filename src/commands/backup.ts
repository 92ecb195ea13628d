import { closeSync, copyFileSync, existsSync, mkdtempSync, openSync, renameSync, rmSync } from "node:fs";
import os from "node:os";
import { dirname, join, resolve } from "node:path";
import { ConfigError } from "../config.ts";
import { copyStore } from "../storage/copy.ts";
import { openDatabase } from "../storage/database.ts";
import type { Command } from "./command.ts";
import { createProgress } from "./progress.ts";
import { sync } from "./sync.ts";

/** Writes the store as it is at one moment into one file; servers go on meanwhile. */
export const backup: Command = {
  name: "backup",
  operands: ["FILE"],
  meaning: "Writes the store into a file, still sealed; the server may run. The master key is not in it.",
  async run({ operands: [file = ""], location }) {
    const path = resolve(file);
    if (existsSync(path)) throw new ConfigError(`${file} exists already; name another file`);
    if (!existsSync(dirname(path))) throw new ConfigError(`there is no directory ${dirname(path)}`);
    const source = await openDatabase(location, "existing");
    const draft = `${path}.partial`;
    removeStore(draft);
    const progress = createProgress("rows copied");
    try {
      // Before there is anything in it.
      closeSync(openSync(draft, "wx", 0o600));
      const target = await openDatabase({ kind: "sqlite", path: draft });
      try {
        await copyStore(source, target, progress.show);
        // One file, and nothing beside it.
        await target.writeConnection.run([{ sql: "pragma journal_mode = delete", parameters: [] }]);
      } finally {
        await target.close();
      }
      progress.end();
      sync(draft);
      renameSync(draft, path);
      sync(dirname(path));
    } finally {
      removeStore(draft);
      await source.close();
    }
    process.stdout.write(
      `The store ${source.name} is in ${file}. It takes the master key to read it; keep that apart.\n`,
    );
    return 0;
  },
};

/** Makes a store out of a file that `backup` wrote. */
export const restore: Command = {
  name: "restore",
  operands: ["FILE"],
  meaning: "Fills a new store, here or in PostgreSQL, from a file that backup wrote.",
  async run({ operands: [file = ""], location, masterKey }) {
    if (!existsSync(file)) throw new ConfigError(`there is no file ${file}`);
    // Opening a store may change its file.
    const directory = mkdtempSync(join(os.tmpdir(), "qsp-restore-"));
    const path = join(directory, "qsp.db");
    const progress = createProgress("rows copied");
    try {
      copyFileSync(file, path);
      const source = await openDatabase({ kind: "sqlite", path });
      try {
        const target = await openDatabase(location);
        try {
          await copyStore(source, target, progress.show);
          progress.end();
          process.stdout.write(`The store ${target.name} is what ${file} holds.\n`);
        } finally {
          await target.close();
        }
      } finally {
        await source.close();
      }
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
    if (masterKey.kind === "file" && !existsSync(masterKey.path))
      process.stdout.write(
        `Put the master key of the backup into ${masterKey.path} before you start the server.\n`,
      );
    return 0;
  },
};

/** A SQLite file and what SQLite puts beside it. */
function removeStore(path: string): void {
  for (const suffix of ["", "-wal", "-shm", "-journal"]) rmSync(`${path}${suffix}`, { force: true });
}

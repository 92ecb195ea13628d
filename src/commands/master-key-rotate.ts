import { openDatabase } from "../storage/database.ts";
import { rewrapStore } from "../storage/rewrap.ts";
import type { Command } from "./command.ts";
import { createProgress } from "./progress.ts";

/** Changes the master key; may be stopped at any point and run again. */
export const masterKeyRotate: Command = {
  name: "master-key rotate",
  operands: [],
  meaning: "Makes a new master key and brings all secrets under it; can be stopped and run again.",
  async run({ location, masterKey }) {
    const database = await openDatabase(location, "existing");
    const progress = createProgress("secrets moved");
    try {
      const { moved, damaged, masterKeyId } = await rewrapStore(database, masterKey, progress.show);
      progress.end();
      for (const identity of damaged)
        process.stderr.write(`qsp: ${identity} does not open and was left as it is\n`);
      process.stdout.write(`${moved} secrets are under master key ${masterKeyId} now.\n`);
      process.stdout.write(
        masterKey.kind === "file"
          ? `${masterKey.path} holds it. Keep a copy apart from the store.\n`
          : "Set QSP_MASTER_KEY to it, and QSP_MASTER_KEY_NEXT to nothing, wherever a server runs.\n",
      );
      return damaged.length === 0 ? 0 : 1;
    } finally {
      await database.close();
    }
  },
};

import { openDatabase } from "../../open-store.ts";
import { type MasterKeySource, previousKeyPath } from "../../secrets/master-key.ts";
import { type Rewrapped, rewrapStore } from "../../secrets/rewrap.ts";
import { createProgress } from "./progress.ts";
import type { StoreVerb } from "./store-verb.ts";

/** Maximum lines about unchanged secrets; there may be as many as there are secrets. */
const maxLines = 20;

/** Changes the master key; can be stopped at any point and run again. */
export const masterKeyRotate: StoreVerb = {
  name: "master-key rotate",
  operands: [],
  meaning: "Makes a new master key and brings all secrets under it; can be stopped and run again.",
  example: "qsp master-key rotate",
  async run({ location, masterKey }) {
    const database = await openDatabase(location, "existing");
    const progress = createProgress("secrets moved");
    try {
      const rewrapped = await rewrapStore(database, masterKey, progress.show);
      progress.end();
      const left = describeLeft(rewrapped, masterKey);
      for (const line of left) process.stderr.write(`qsp: ${line}\n`);
      const { moved, underNewKey, masterKeyId } = rewrapped;
      process.stdout.write(
        `This run moved ${count(moved)}; ${underNewKey} in all are under master key ${masterKeyId} now.\n`,
      );
      process.stdout.write(`${describeKeys(masterKey)}\n`);
      return left.length === 0 ? 0 : 1;
    } finally {
      await database.close();
    }
  },
};

/** Describes what was left unchanged, and why. */
function describeLeft({ damaged, outOfReach }: Rewrapped, masterKey: MasterKeySource): string[] {
  const cure =
    masterKey.kind === "file"
      ? `; put that key into ${previousKeyPath(masterKey.path)} and run this again`
      : "";
  return [
    ...shorten(
      damaged.map((identity) => `${identity} does not open and was left as it is`),
      "secrets do not open",
    ),
    ...shorten(
      outOfReach.map(
        ({ masterKeyId, secrets }) =>
          `${count(secrets)} ${secrets === 1 ? "is" : "are"} under master key ${masterKeyId}, which is not at hand${cure}`,
      ),
      "master keys are not at hand",
    ),
  ];
}

function shorten(lines: readonly string[], what: string): string[] {
  const rest = lines.length - maxLines;
  return rest > 0 ? [...lines.slice(0, maxLines), `${rest} more ${what}`] : [...lines];
}

/** Describes where the keys are, and what to do with them. */
function describeKeys(masterKey: MasterKeySource): string {
  if (masterKey.kind === "file")
    return `${masterKey.path} holds it. Keep a copy apart from the store.
${previousKeyPath(masterKey.path)} holds the one before: backups from before need it. Once there are newer ones, remove it, or keep it apart from them.`;
  return `Set QSP_MASTER_KEY to it, and QSP_MASTER_KEY_NEXT to nothing, wherever a server runs. One that had no QSP_MASTER_KEY_NEXT before this reads and writes no secrets until then.
Keep the key before for as long as you keep backups from before: they need it.`;
}

function count(secrets: number): string {
  return `${secrets} ${secrets === 1 ? "secret" : "secrets"}`;
}

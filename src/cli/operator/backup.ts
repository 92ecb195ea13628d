import { closeSync, existsSync, openSync, renameSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ConfigError } from "../../config.ts";
import { copyStore } from "../../database/copy.ts";
import type { Database } from "../../database/database.ts";
import { diskFullError } from "../../database/disk-full.ts";
import { createDraft, type Draft, removeRemains } from "../../database/drafts.ts";
import { sync } from "../../database/fsync.ts";
import { readMessage, StoreFailureError } from "../../database/store-error.ts";
import type { StoreTables } from "../../open-store.ts";
import { type MasterKeySource, nextKeyPath } from "../../secrets/master-key.ts";
import { countByMasterKey } from "../../secrets/master-keys-in-use.ts";
import { saysDiskFull } from "../../system-error.ts";
import { withCount } from "../output/progress.ts";
import { type FoundKeys, findKeyFaults, findKeys, type KeyFault, warn } from "./check-master-key.ts";
import { tellOfRemains } from "./remains.ts";
import { type StoreVerb, verdict } from "./store-verb.ts";
import { withDraft } from "./with-draft.ts";
import { withDatabase } from "./with-store.ts";

/** The suffix of an incomplete backup file. */
const draftEnding = ".partial";

/** Writes a snapshot of the store to one file; servers keep running. */
export const backup: StoreVerb = {
  line: "backup FILE",
  operandFiles: { FILE: "creates" },
  meaning:
    "Writes the store to a file, with its secrets sealed. The server may be running. The file does not contain the master key. The exit code is 1 if the file was written but the configured master key does not open it.",
  example: "qsp backup monday.backup",
  async run({ operands: [file = ""], location, masterKey, loadTables }) {
    const path = resolve(file);
    if (file === "-") throw new ConfigError("a backup cannot go to standard output; name a file");
    if (!existsSync(dirname(path))) throw new ConfigError(`the directory ${dirname(path)} does not exist`);
    // Before the copy: a rotation that finishes meanwhile replaces the key that opens the copy.
    const keys = findKeys(masterKey);
    const tables = await loadTables();
    return withDatabase(tables, location, "existing", async (source) => {
      const copying = writeCopy(path, (draft) => fill(draft, source, tables, keys));
      const { masterKeyIds, faults } = await copying.catch((error: unknown) => {
        throw explainWriting(error, file);
      });
      // Keep the file: it may be the only copy, and the right key may be elsewhere.
      for (const fault of faults) warn(`${file} was written, but ${describeFault(fault, masterKeyIds)}`);
      const written = `Backed up the store ${source.name} to ${file}. Its secret keys are sealed under the master key; store that key separately. Anyone who has the file can read names, logs and password hashes.`;
      return verdict(faults.length === 0, `${written}${describeKeys(masterKeyIds, masterKey)}`);
    });
  },
};

/** A finished copy and the keys that it needs. */
interface Copied {
  readonly masterKeyIds: readonly string[];
  /** Why the operator's keys do not open it. */
  readonly faults: readonly KeyFault[];
}

/** Writes a file that appears only once it is complete. */
async function writeCopy(path: string, fill: (draft: Draft) => Promise<Copied>): Promise<Copied> {
  // Remove the leftovers of any backup in the directory: each usually has its own file name.
  tellOfRemains(removeRemains(`${dirname(path)}/`, draftEnding));
  // A unique name, so that no other file is overwritten.
  const makeDraft = (): Draft => createDraft(`${path}.`, draftEnding);
  return withDraft(makeDraft, async (draft) => {
    const copied = await fill(draft);
    sync(draft.path);
    renameSync(draft.path, path);
    sync(dirname(path));
    return copied;
  });
}

async function fill(draft: Draft, source: Database, tables: StoreTables, keys: FoundKeys): Promise<Copied> {
  // Create the file with its final mode before it has content.
  closeSync(openSync(draft.path, "wx", 0o600));
  return withDatabase(tables, { kind: "sqlite", path: draft.path }, "create", async (target) => {
    await withCount("rows copied", (onProgress) => copyStore(source, target, onProgress));
    // Read through the write connection: an open reader would block the journal mode switch.
    const masterKeys = await countByMasterKey(target.writer);
    const faults = await findKeyFaults(target.writer, keys);
    // Leave one file without a journal next to it.
    await target.writeConnection.run([{ sql: "pragma journal_mode = delete", parameters: [] }]);
    return { masterKeyIds: masterKeys.map(({ masterKeyId }) => masterKeyId), faults };
  });
}

/** Converts an error about the backup file to a ConfigError; no other file is written. */
function explainWriting(error: unknown, file: string): unknown {
  if ((error instanceof StoreFailureError && error.code === "FULL") || saysDiskFull(error))
    return diskFullError(file);
  // An operating system error.
  if (error instanceof Error && "syscall" in error)
    return new ConfigError(`${file} cannot be written: ${readMessage(error)}`);
  return error;
}

/** Names the master keys that a backup needs if there are several. */
function describeKeys(masterKeyIds: readonly string[], source: MasterKeySource): string {
  if (masterKeyIds.length <= 1) return "";
  const all = `\nIts secrets are sealed under ${masterKeyIds.length} master keys, ${masterKeyIds.join(" and ")}: reading it requires all of them.`;
  const [first, next] =
    source.kind === "file"
      ? [source.path, existsSync(nextKeyPath(source.path)) ? nextKeyPath(source.path) : undefined]
      : [source.settings.current, source.next && source.settings.next];
  return next === undefined
    ? all
    : `${all}\nThey are in ${first} and ${next}, because a rotation is in progress.`;
}

/** Describes why the operator's keys cannot open a backup, and what to do. */
function describeFault(fault: KeyFault, masterKeyIds: readonly string[]): string {
  switch (fault.kind) {
    case "invalid":
      return `its master key cannot be checked: ${fault.reason}`;
    case "wrong":
      return `${fault.name} does not open it: find master key ${masterKeyIds.join(" and ")}; without it, the secrets in the store and in its backups are lost`;
    case "damaged":
      return "its root key was changed outside the server: keep older backups, and run qsp store verify";
    case "incomplete":
      return `${fault.secrets} of its secrets are sealed under master key ${fault.masterKeyId}, which is not available: find that key, or they are lost`;
  }
}

import {
  type MasterKeySource,
  olderKeyPath,
  previousKeyPath,
  removeKeyRemains,
} from "../../secrets/master-key.ts";
import { type Rewrapped, rewrapStore } from "../../secrets/rewrap.ts";
import { counted } from "../output/output.ts";
import { withCount } from "../output/progress.ts";
import { tellOfRemains } from "./remains.ts";
import { type StoreVerb, verdict } from "./store-verb.ts";
import { withDatabase } from "./with-store.ts";

/** Maximum lines about unchanged secrets; all secrets may be affected. */
const maxLines = 20;

/** Rotates the master key; can be stopped at any point and run again. */
export const masterKeyRotate: StoreVerb = {
  line: "master-key rotate",
  meaning: "Creates a new master key and seals all secrets under it. You can stop it and run it again.",
  async run({ location, masterKey, loadTables }) {
    tellOfRemains(removeKeyRemains(masterKey));
    const rewrapped = await withDatabase(await loadTables(), location, "existing", (database) =>
      withCount("secrets moved", (onProgress) => rewrapStore(database, masterKey, onProgress)),
    );
    const left = describeLeft(rewrapped, masterKey);
    for (const line of left) process.stderr.write(`qsp: ${line}\n`);
    const { moved, underNewKey, masterKeyId } = rewrapped;
    const moves = `This run moved ${counted(moved, "secret")}; ${underNewKey} in all are now under master key ${masterKeyId}.`;
    return verdict(left.length === 0, `${moves}\n${describeKeys(masterKey)}`);
  },
};

/** Describes the secrets that were left unchanged, and why. */
function describeLeft({ damaged, outOfReach }: Rewrapped, masterKey: MasterKeySource): string[] {
  const describeCure = (masterKeyId: string): string =>
    masterKey.kind === "file"
      ? `; put that key into ${olderKeyPath(masterKey.path, masterKeyId)} and run this command again`
      : "";
  return [
    ...shorten(
      damaged.map((identity) => `${identity} cannot be decrypted and is unchanged`),
      "secrets cannot be decrypted",
    ),
    ...shorten(
      outOfReach.map(
        ({ masterKeyId, secrets }) =>
          `${counted(secrets, "secret")} ${secrets === 1 ? "is" : "are"} sealed under master key ${masterKeyId}, which is not available${describeCure(masterKeyId)}`,
      ),
      "master keys are not available",
    ),
  ];
}

function shorten(lines: readonly string[], what: string): string[] {
  const rest = lines.length - maxLines;
  return rest > 0 ? [...lines.slice(0, maxLines), `${rest} more ${what}`] : [...lines];
}

/** Describes where the keys are and what to do with them. */
function describeKeys(masterKey: MasterKeySource): string {
  if (masterKey.kind === "file")
    return `${masterKey.path} contains it. Store a copy separately from the store.
${previousKeyPath(masterKey.path)} contains the previous key, which older backups need. Once you have newer backups, remove it or store it separately from them.`;
  const { current, next } = masterKey.settings;
  return `On every server, set ${current} to it and unset ${next}. Until then, a server that was started without ${next} cannot read or write secrets.
Keep the previous key as long as you keep older backups: they need it.`;
}

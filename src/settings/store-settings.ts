import type { Config } from "../config.ts";
import { type DatabaseLocation, type OpenMode, sqliteIn } from "../database/database.ts";
import type { QuotaLimits } from "../records/quota.ts";
import { keyCommands, keyVariables, type MasterKeySource, masterKeyIn } from "../secrets/master-key.ts";
import { readKeyFromCommand } from "../secrets/master-key-command.ts";

/** The location of the store, the source of its master key, and how a server opens it. */
export function storeSettings(config: Config): {
  location: DatabaseLocation;
  masterKey: MasterKeySource;
  mode: OpenMode;
} {
  const { databaseUrl, dataDir } = config;
  const mode = config.requireStore ? "upgrade" : "create";
  const location: DatabaseLocation =
    databaseUrl === "" ? sqliteIn(dataDir) : { kind: "postgres", url: databaseUrl };
  return { location, mode, masterKey: findMasterKey(config) };
}

/** @throws StorageError if a command does not print a key */
function findMasterKey(config: Config): MasterKeySource {
  const { dataDir, masterKey, masterKeyNext, masterKeyFile, masterKeyCommand, masterKeyNextCommand } = config;
  if (masterKeyCommand.length > 0)
    return {
      kind: "values",
      settings: keyCommands,
      current: readKeyFromCommand(keyCommands.current, masterKeyCommand),
      next:
        masterKeyNextCommand.length > 0
          ? readKeyFromCommand(keyCommands.next, masterKeyNextCommand)
          : undefined,
    };
  if (masterKey !== "")
    return { kind: "values", settings: keyVariables, current: masterKey, next: masterKeyNext || undefined };
  return masterKeyFile === "" ? masterKeyIn(dataDir) : { kind: "file", path: masterKeyFile };
}

/** The quota factor of an open server: all its callers are one owner and share one quota. */
const openFactor = 10;

/** The quota of each owner. */
export function quotaSettings(config: Config): QuotaLimits {
  const factor = config.auth === "open" ? openFactor : 1;
  return {
    records: config.maxRecordsPerUser * factor,
    tunnels: config.maxTunnelsPerUser * factor,
    idempotencyKeys: config.maxIdempotencyKeysPerUser * factor,
  };
}

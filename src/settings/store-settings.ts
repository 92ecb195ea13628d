import type { Config } from "../config.ts";
import { type DatabaseLocation, type OpenMode, sqliteIn } from "../database/database.ts";
import type { QuotaLimits } from "../records/quota.ts";
import { type MasterKeySource, masterKeyIn } from "../secrets/master-key.ts";

/** The location of the store, the source of its master key, and how a server opens it. */
export function storeSettings(config: Config): {
  location: DatabaseLocation;
  masterKey: MasterKeySource;
  mode: OpenMode;
} {
  const { databaseUrl, dataDir, masterKey, masterKeyNext, masterKeyFile } = config;
  const mode = config.requireStore ? "upgrade" : "create";
  const location: DatabaseLocation =
    databaseUrl === "" ? sqliteIn(dataDir) : { kind: "postgres", url: databaseUrl };
  if (masterKey !== "") {
    const next = masterKeyNext === "" ? undefined : masterKeyNext;
    return { location, mode, masterKey: { kind: "values", current: masterKey, next } };
  }
  return {
    location,
    mode,
    masterKey: masterKeyFile === "" ? masterKeyIn(dataDir) : { kind: "file", path: masterKeyFile },
  };
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

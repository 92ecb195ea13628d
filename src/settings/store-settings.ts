import type { Config } from "../config.ts";
import { type DatabaseLocation, sqliteIn } from "../database/database.ts";
import type { QuotaLimits } from "../records/quota.ts";
import { type MasterKeySource, masterKeyIn } from "../secrets/master-key.ts";

/** Where the store is, and what opens it. */
export function storeSettings(config: Config): { location: DatabaseLocation; masterKey: MasterKeySource } {
  const { databaseUrl, dataDir, masterKey, masterKeyNext, masterKeyFile } = config;
  const location: DatabaseLocation =
    databaseUrl === "" ? sqliteIn(dataDir) : { kind: "postgres", url: databaseUrl };
  if (masterKey !== "") {
    const next = masterKeyNext === "" ? undefined : masterKeyNext;
    return { location, masterKey: { kind: "values", current: masterKey, next } };
  }
  return {
    location,
    masterKey: masterKeyFile === "" ? masterKeyIn(dataDir) : { kind: "file", path: masterKeyFile },
  };
}

/** How many times as much an open server stores: all its callers are one owner, and share one quota. */
const openFactor = 10;

/** Says how much each owner may store. */
export function quotaSettings(config: Config): QuotaLimits {
  const factor = config.auth === "open" ? openFactor : 1;
  return {
    records: config.maxRecordsPerUser * factor,
    tunnels: config.maxTunnelsPerUser * factor,
    idempotencyKeys: config.maxIdempotencyKeysPerUser * factor,
  };
}

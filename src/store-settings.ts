import type { Config } from "./config.ts";
import { type DatabaseLocation, sqliteIn } from "./storage/database.ts";
import { type MasterKeySource, masterKeyIn } from "./storage/master-key.ts";

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

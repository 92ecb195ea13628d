/** Opens stores with the tables of the whole program, like main.ts. */
import { extensions } from "../../extensions/index.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import {
  type Database,
  type DatabaseLocation,
  type OpenMode,
  sqliteIn,
} from "../../src/database/database.ts";
import { listTables } from "../../src/database/schema.ts";
import * as opening from "../../src/open-store.ts";
import { masterKeyIn } from "../../src/secrets/master-key.ts";
import { collectPackages, loadLogVerification } from "../../src/services/registry.ts";
import type { Store, StoreOptions } from "../../src/store/store.ts";

/** The packages of the core and of all extensions. */
const packages = await collectPackages(extensions);

/** The tables of all packages. */
export const tables = await opening.collectTables(packages);

/** Log verification, including what extensions derive from the logs. */
export const logVerification = await loadLogVerification(packages);

/** Table names, each after the tables that it depends on. */
export const tableNames = listTables(tables.owners).map(([name]) => name);

/** The tables of the core alone. */
export const coreTables = await opening.collectTables([]);

export function openStore(options: Omit<StoreOptions, "owners">): Promise<Store> {
  return opening.openStore({ ...options, tables });
}

export function openDatabase(location: DatabaseLocation, mode?: OpenMode): Promise<Database> {
  return opening.openDatabase(tables, location, mode);
}

/** Opens the store in a data directory. */
export function openTestStore(dataDir: string, provider: CryptoProvider): Promise<Store> {
  return openStore({ location: sqliteIn(dataDir), masterKey: masterKeyIn(dataDir), provider });
}

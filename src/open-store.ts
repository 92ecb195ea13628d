/** Opens the store with the tables of everything that uses it. */
import { auditTables } from "./audit/tables.ts";
import { type Database, type DatabaseLocation, type OpenMode, openDatabaseOf } from "./database/database.ts";
import { identityTables } from "./identity/tables.ts";
import type { AnyTable, RecordTables } from "./records/table-declaration.ts";
import { recordTables } from "./records/tables.ts";
import { secretTables } from "./secrets/tables.ts";
import { blockchainTables } from "./services/blockchain/tables.ts";
import { dappTables } from "./services/dapp/tables.ts";
import { defiTables } from "./services/defi/tables.ts";
import { iotTables } from "./services/iot/tables.ts";
import { kmsTables } from "./services/kms/migrations.ts";
import { nftTables } from "./services/nft/tables.ts";
import type { ServicePackage } from "./services/registry.ts";
import { vpnTables } from "./services/vpn/tables.ts";
import { walletTables } from "./services/wallet/tables.ts";
import { openStoreOf } from "./store/open-store-of.ts";
import type { Store, StoreOptions } from "./store/store.ts";

export interface StoreTables {
  readonly owners: readonly RecordTables[];
  /** As in `RecordTables`. */
  readonly records: readonly AnyTable[];
}

/** Core modules with tables in the store. A new service adds its tables here. */
const coreOwners: readonly RecordTables[] = [
  secretTables,
  auditTables,
  recordTables,
  identityTables,
  kmsTables,
  walletTables,
  nftTables,
  dappTables,
  defiTables,
  blockchainTables,
  iotTables,
  vpnTables,
];

/** Collects the tables of the core and of packages, each after the tables that it depends on. */
export async function collectTables(packages: readonly ServicePackage[]): Promise<StoreTables> {
  const added = await Promise.all(packages.map(async ({ tables }) => (await tables?.()) ?? []));
  const owners = [...coreOwners, ...added.flat()];
  return { owners, records: owners.flatMap(({ records = [] }) => records) };
}

/**
 * Opens a store, and creates its missing parts.
 *
 * @throws StorageError with a sentence for the operator
 */
export function openStore({
  tables,
  ...options
}: Omit<StoreOptions, "owners"> & { readonly tables: StoreTables }): Promise<Store> {
  return openStoreOf({ ...options, owners: tables.owners });
}

/**
 * Opens the database of a store without its sealed contents.
 *
 * @throws StorageError as openDatabaseOf does
 */
export function openDatabase(
  { owners }: StoreTables,
  location: DatabaseLocation,
  mode?: OpenMode,
): Promise<Database> {
  return openDatabaseOf(owners, location, mode);
}

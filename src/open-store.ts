/** Opens the store with the tables of all its users. */
import { auditTables } from "./audit/tables.ts";
import { type Database, type DatabaseLocation, type OpenMode, openDatabaseOf } from "./database/database.ts";
import { listTables, type TableOwner } from "./database/schema.ts";
import { identityTables } from "./identity/tables.ts";
import { recordTables } from "./records/tables.ts";
import { secretTables } from "./secrets/tables.ts";
import { blockchainTables } from "./services/blockchain/tables.ts";
import { dappTables } from "./services/dapp/tables.ts";
import { defiTables } from "./services/defi/tables.ts";
import { googleKmsTables } from "./services/google-kms/tables.ts";
import { iotTables } from "./services/iot/tables.ts";
import { kmsTables } from "./services/kms/migrations.ts";
import { nftTables } from "./services/nft/tables.ts";
import { vpnTables } from "./services/vpn/tables.ts";
import { walletTables } from "./services/wallet/tables.ts";
import { openStoreOf, type Store, type StoreOptions } from "./store/store.ts";
import { tlogTables } from "./tlog/tables.ts";

/** The parts of the server that have tables in the store. A new service adds its tables here. */
export const tableOwners: readonly TableOwner[] = [
  secretTables,
  auditTables,
  recordTables,
  identityTables,
  kmsTables,
  googleKmsTables,
  walletTables,
  nftTables,
  dappTables,
  defiTables,
  blockchainTables,
  iotTables,
  vpnTables,
  tlogTables,
];

/** The names of all tables, each after the tables that it depends on. */
export const tableNames = listTables(tableOwners).map(([name]) => name);

/** Opens a store, and creates its missing parts. @throws StorageError with a sentence for the operator */
export function openStore(options: Omit<StoreOptions, "owners">): Promise<Store> {
  return openStoreOf({ ...options, owners: tableOwners });
}

/** Opens the database of a store without its sealed contents. @throws StorageError as openDatabaseOf does */
export function openDatabase(location: DatabaseLocation, mode?: OpenMode): Promise<Database> {
  return openDatabaseOf(tableOwners, location, mode);
}

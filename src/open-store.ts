/** Opens the store with the tables of all its users. */
import { auditTables } from "./audit/tables.ts";
import { type Database, type DatabaseLocation, type OpenMode, openDatabaseOf } from "./database/database.ts";
import { listTables, type TableOwner } from "./database/schema.ts";
import { clientTable, identityTables, issuerKeyTable, userTable } from "./identity/tables.ts";
import { recordTables } from "./records/tables.ts";
import { secretTables } from "./secrets/tables.ts";
import { blockchainTables, validatorTable } from "./services/blockchain/tables.ts";
import { contractTable, dappTables } from "./services/dapp/tables.ts";
import {
  defiTables,
  proposalTable,
  signerTable,
  walletTable as signerWalletTable,
} from "./services/defi/tables.ts";
import { googleKmsTables, ringTable } from "./services/google-kms/tables.ts";
import { challengeTable, deviceTable, iotTables, stateTable } from "./services/iot/tables.ts";
import { kmsTables } from "./services/kms/migrations.ts";
import { grantTable, importTable, nameTable } from "./services/kms/tables.ts";
import { nftTables, tokenTable, transferTable } from "./services/nft/tables.ts";
import { tunnelTable, vpnTables } from "./services/vpn/tables.ts";
import { walletTable, walletTables } from "./services/wallet/tables.ts";
import { openStoreOf } from "./store/open-store-of.ts";
import type { Store, StoreOptions } from "./store/store.ts";
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

/** The tables whose rows have tags, but for keys and blocks, which have separate verifications. */
export const recordDeclarations = [
  userTable,
  clientTable,
  issuerKeyTable,
  nameTable,
  grantTable,
  importTable,
  ringTable,
  walletTable,
  tokenTable,
  transferTable,
  contractTable,
  signerWalletTable,
  signerTable,
  proposalTable,
  validatorTable,
  deviceTable,
  stateTable,
  challengeTable,
  tunnelTable,
] as const;

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

/** Opens the store with the tables of all its users. */
import { auditTables } from "./audit/tables.ts";
import { type Database, type DatabaseLocation, type OpenMode, openDatabaseOf } from "./database/database.ts";
import type { TableOwner } from "./database/schema.ts";
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
import { challengeTable, deviceTable, iotTables, stateTable } from "./services/iot/tables.ts";
import { kmsTables } from "./services/kms/migrations.ts";
import { grantTable, importTable, nameTable } from "./services/kms/tables.ts";
import { nftTables, tokenTable, transferTable } from "./services/nft/tables.ts";
import type { ServicePackage } from "./services/registry.ts";
import type { PackageTables } from "./services/service-module.ts";
import { tunnelTable, vpnTables } from "./services/vpn/tables.ts";
import { walletTable, walletTables } from "./services/wallet/tables.ts";
import { openStoreOf } from "./store/open-store-of.ts";
import type { Store, StoreOptions } from "./store/store.ts";
import { tlogTables } from "./tlog/tables.ts";

/** The tables of a store. */
export interface StoreTables {
  readonly owners: readonly TableOwner[];
  /** Those whose rows have tags, but for keys and blocks, which have separate verifications. */
  readonly records: PackageTables["records"];
}

/** The parts of the core that have tables in the store. A new service adds its tables here. */
const coreOwners: readonly TableOwner[] = [
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
  tlogTables,
];

const coreRecords: PackageTables["records"] = [
  userTable,
  clientTable,
  issuerKeyTable,
  nameTable,
  grantTable,
  importTable,
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
];

/** Collects the tables of the core and of packages, each after the tables that it depends on. */
export async function collectTables(packages: readonly ServicePackage[]): Promise<StoreTables> {
  const added = await Promise.all(packages.map(async ({ tables }) => (await tables?.()) ?? []));
  return {
    owners: [...coreOwners, ...added.flat().map(({ owner }) => owner)],
    records: [...coreRecords, ...added.flat().flatMap(({ records }) => records)],
  };
}

/** Opens a store, and creates its missing parts. @throws StorageError with a sentence for the operator */
export function openStore({
  tables,
  ...options
}: Omit<StoreOptions, "owners"> & { readonly tables: StoreTables }): Promise<Store> {
  return openStoreOf({ ...options, owners: tables.owners });
}

/** Opens the database of a store without its sealed contents. @throws StorageError as openDatabaseOf does */
export function openDatabase(
  { owners }: StoreTables,
  location: DatabaseLocation,
  mode?: OpenMode,
): Promise<Database> {
  return openDatabaseOf(owners, location, mode);
}

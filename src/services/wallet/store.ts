/** What the wallet service keeps: wallets, their secret keys sealed. */
import { column, type ListedRow, type RecordOf } from "../../records/columns.ts";
import { recordQuota } from "../../records/quota.ts";
import { openTable } from "../../records/record-table.ts";
import { describeSealedKey, type TableDeclaration } from "../../records/table-declaration.ts";
import type { SealedKey } from "../../secrets/sealed-keys.ts";
import type { Store } from "../../store/store.ts";

/** The algorithm of all wallets. */
export const walletAlgorithm = "ML-DSA-65";

const columns = {
  walletId: column.text("wallet_id"),
  label: column.text("label"),
  address: column.text("address"),
  /** Raw. */
  publicKey: column.bytes("public_key"),
  /** Who made it. */
  owner: column.text("owner"),
  createdAt: column.time("created_at_ms"),
};

/** A wallet without its secret key. */
export type Wallet = RecordOf<typeof columns>;

declare module "../../database/schema.ts" {
  interface Schema {
    wallets: ListedRow<typeof columns>;
  }
}

/** Names the list of all wallets, for page tokens and counts. */
export const walletList = "wallets";
/** Counts the wallets of an owner. */
export const walletQuota = recordQuota(walletList, "wallets");

const walletTable: TableDeclaration<typeof columns> = {
  name: walletList,
  columns,
  key: ["walletId"],
  owner: "owner",
  quota: walletQuota,
  describe: ({ walletId }) => `wallet ${walletId}`,
};

/** Names a wallet's sealed secret key. */
export function nameSealedKey(wallet: Wallet): SealedKey {
  return describeSealedKey(walletTable, walletAlgorithm, wallet);
}

/** The wallets of the service. */
export type WalletStore = ReturnType<typeof createWalletStore>;

/** Makes the store of the service on the store of all. */
export function createWalletStore(store: Store) {
  return openTable(store, walletTable);
}

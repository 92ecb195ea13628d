import { column, type ListedRow, type RecordOf } from "../../records/columns.ts";
import { createRecordTable } from "../../records/create-table.ts";
import { recordQuota } from "../../records/quota.ts";
import type { RecordTable } from "../../records/record-table.ts";
import type { RecordTables, TableDeclaration } from "../../records/table-declaration.ts";

export const walletAlgorithm = "ML-DSA-65";

const columns = {
  walletId: column.text("wallet_id"),
  label: column.text("label"),
  address: column.unique(column.text("address")),
  /** Raw. */
  publicKey: column.bytes("public_key"),
  /** User who created the wallet. */
  owner: column.text("owner"),
  createdAt: column.time("created_at_ms"),
};

/** A wallet without its secret key. */
export type Wallet = RecordOf<typeof columns>;

export type WalletStore = RecordTable<typeof columns>;

/** Quota for an owner's wallets. */
export const walletQuota = recordQuota("wallets", "wallets");

export const walletTable: TableDeclaration<typeof columns> = {
  name: "wallets",
  columns,
  key: ["walletId"],
  owner: "owner",
  quota: walletQuota,
  hasSecret: () => true,
  describe: ({ walletId }) => `wallet ${walletId}`,
};

declare module "../../database/schema.ts" {
  interface Schema {
    wallets: ListedRow<typeof columns>;
  }
}

export const walletTables: RecordTables = {
  records: [walletTable],
  tables: { wallets: ["position"] },
  steps: {
    "0001-wallet": (types) => [
      createRecordTable(types, walletTable),
      "create index wallets_by_owner_position on wallets (owner, position)",
    ],
  },
};

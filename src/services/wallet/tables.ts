import type { TableOwner } from "../../database/schema.ts";
import { column, type ListedRow } from "../../records/columns.ts";
import { createRecordTable } from "../../records/create-table.ts";
import { recordQuota } from "../../records/quota.ts";
import type { TableDeclaration } from "../../records/table-declaration.ts";

const columns = {
  walletId: column.text("wallet_id"),
  label: column.text("label"),
  address: column.unique(column.text("address")),
  /** Raw. */
  publicKey: column.bytes("public_key"),
  /** The user who made it. */
  owner: column.text("owner"),
  createdAt: column.time("created_at_ms"),
};

/** The name of the list of all wallets, in page tokens and counts. */
export const walletList = "wallets";

/** Counts the wallets of an owner. */
export const walletQuota = recordQuota(walletList, "wallets");

export const walletTable: TableDeclaration<typeof columns> = {
  name: walletList,
  columns,
  key: ["walletId"],
  owner: "owner",
  quota: walletQuota,
  describe: ({ walletId }) => `wallet ${walletId}`,
};

declare module "../../database/schema.ts" {
  interface Schema {
    wallets: ListedRow<typeof columns>;
  }
}

/** The table of wallets: see store.ts. */
export const walletTables: TableOwner = {
  tables: { wallets: ["position"] },
  steps: {
    "0001-wallet": (types) => [
      createRecordTable(types, walletTable),
      "create index wallets_by_owner_position on wallets (owner, position)",
    ],
  },
};

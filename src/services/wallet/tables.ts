import type { TableOwner } from "../../database/schema.ts";

/** The table of wallets: see store.ts. */
export const walletTables: TableOwner = {
  tables: { wallets: ["position"] },
  steps: {
    "0001-wallet": ({ bytes, integer }) => [
      `create table wallets (
        position ${integer} not null primary key,
        wallet_id text not null unique,
        label text not null,
        address text not null unique,
        public_key ${bytes} not null,
        owner text not null,
        created_at_ms ${integer} not null,
        record_tag text not null
      )`,
      "create index wallets_by_owner_position on wallets (owner, position)",
    ],
  },
};

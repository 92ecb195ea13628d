import type { TableOwner } from "../../database/schema.ts";

/** The table of contracts: see store.ts. */
export const dappTables: TableOwner = {
  tables: { dapp_contracts: ["position"] },
  steps: {
    "0001-dapp": ({ bytes, integer }) => [
      `create table dapp_contracts (
        position ${integer} not null primary key,
        contract_id text not null unique,
        name text not null,
        code_hash text not null,
        signature ${bytes} not null,
        public_key ${bytes} not null,
        owner text not null,
        deployed_at_ms ${integer} not null,
        record_tag text not null
      )`,
      "create index dapp_contracts_by_owner_position on dapp_contracts (owner, position)",
    ],
  },
};

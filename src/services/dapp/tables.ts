import type { TableOwner } from "../../database/schema.ts";
import { column, type ListedRow } from "../../records/columns.ts";
import { createRecordTable } from "../../records/create-table.ts";
import { recordQuota } from "../../records/quota.ts";
import type { TableDeclaration } from "../../records/table-declaration.ts";

const columns = {
  contractId: column.text("contract_id"),
  name: column.text("name"),
  /** SHA-256 of the code; 64 lower-case hexadecimal digits. */
  codeHash: column.text("code_hash"),
  /** Raw ML-DSA-65 over the 32 bytes of the hash. */
  signature: column.bytes("signature"),
  /** Raw ML-DSA-65. */
  publicKey: column.bytes("public_key"),
  /** The user who deployed it. */
  owner: column.text("owner"),
  deployedAt: column.time("deployed_at_ms"),
};

/** The name of the list of all contracts, in page tokens and counts. */
export const contractList = "dapp_contracts";

/** Counts the contracts of an owner. */
export const contractQuota = recordQuota(contractList, "contracts");

export const contractTable: TableDeclaration<typeof columns> = {
  name: contractList,
  columns,
  key: ["contractId"],
  owner: "owner",
  quota: contractQuota,
  describe: ({ contractId }) => `contract ${contractId}`,
};

declare module "../../database/schema.ts" {
  interface Schema {
    dapp_contracts: ListedRow<typeof columns>;
  }
}

/** The table of contracts: see store.ts. */
export const dappTables: TableOwner = {
  tables: { dapp_contracts: ["position"] },
  steps: {
    "0001-dapp": (types) => [
      createRecordTable(types, contractTable),
      "create index dapp_contracts_by_owner_position on dapp_contracts (owner, position)",
    ],
  },
};

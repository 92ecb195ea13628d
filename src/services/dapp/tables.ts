import { column, type ListedRow, type RecordOf } from "../../records/columns.ts";
import { createRecordTable } from "../../records/create-table.ts";
import { recordQuota } from "../../records/quota.ts";
import type { RecordTable } from "../../records/record-table.ts";
import type { RecordTables, TableDeclaration } from "../../records/table-declaration.ts";

const columns = {
  contractId: column.text("contract_id"),
  name: column.text("name"),
  /** SHA-256 of the code; 64 lower-case hexadecimal digits. */
  codeHash: column.text("code_hash"),
  /** Raw ML-DSA-65 over the 32 bytes of the hash. */
  signature: column.bytes("signature"),
  /** Raw ML-DSA-65. */
  publicKey: column.bytes("public_key"),
  /** User who deployed the contract. */
  owner: column.text("owner"),
  deployedAt: column.time("deployed_at_ms"),
};

/** A contract; its signature protects its hash. */
export type Contract = RecordOf<typeof columns>;

export type DappStore = RecordTable<typeof columns>;

/** Quota for an owner's contracts. */
export const contractQuota = recordQuota("dapp_contracts", "contracts");

export const contractTable: TableDeclaration<typeof columns> = {
  name: "dapp_contracts",
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

export const dappTables: RecordTables = {
  records: [contractTable],
  tables: { dapp_contracts: ["position"] },
  steps: {
    "0001-dapp": (types) => [
      createRecordTable(types, contractTable),
      "create index dapp_contracts_by_owner_position on dapp_contracts (owner, position)",
    ],
  },
};

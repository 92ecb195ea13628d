/** What the contract service keeps: hashes of contracts with their signatures. */
import { column, type ListedRow, type RecordOf } from "../../records/columns.ts";
import { recordQuota } from "../../records/quota.ts";
import { openTable } from "../../records/record-table.ts";
import type { TableDeclaration } from "../../records/table-declaration.ts";
import type { Store } from "../../store/store.ts";

const columns = {
  contractId: column.text("contract_id"),
  name: column.text("name"),
  /** SHA-256 of the code; 64 lower-case hexadecimal digits. */
  codeHash: column.text("code_hash"),
  /** Raw ML-DSA-65 over the 32 bytes of the hash. */
  signature: column.bytes("signature"),
  /** Raw ML-DSA-65. */
  publicKey: column.bytes("public_key"),
  /** Who deployed it. */
  owner: column.text("owner"),
  deployedAt: column.time("deployed_at_ms"),
};

/** A contract; its signature vouches for its hash. */
export type Contract = RecordOf<typeof columns>;

declare module "../../database/schema.ts" {
  interface Schema {
    dapp_contracts: ListedRow<typeof columns>;
  }
}

/** Names the list of all contracts, for page tokens and counts. */
export const contractList = "dapp_contracts";
/** Counts the contracts of an owner. */
export const contractQuota = recordQuota(contractList, "contracts");

const contractTable: TableDeclaration<typeof columns> = {
  name: contractList,
  columns,
  key: ["contractId"],
  owner: "owner",
  quota: contractQuota,
  describe: ({ contractId }) => `contract ${contractId}`,
};

/** The contracts of the service. */
export type DappStore = ReturnType<typeof createDappStore>;

/** Makes the store of the service on the store of all. */
export function createDappStore(store: Store) {
  return openTable(store, contractTable);
}

/** What the contract service keeps: hashes of contracts with their signatures. */
import {
  bytes,
  type PositionColumn,
  type RecordOf,
  type RowOf,
  type TagColumn,
  text,
  time,
} from "../../records/columns.ts";
import type { Principal } from "../../records/ownership.ts";
import type { Page, PageRequest } from "../../records/pages.ts";
import { recordQuota } from "../../records/quota.ts";
import { openTable, type Stored, type TableDeclaration } from "../../records/record-table.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";

const columns = {
  contractId: text("contract_id"),
  name: text("name"),
  /** SHA-256 of the code; 64 lower-case hexadecimal digits. */
  codeHash: text("code_hash"),
  /** Raw ML-DSA-65 over the 32 bytes of the hash. */
  signature: bytes("signature"),
  /** Raw ML-DSA-65. */
  publicKey: bytes("public_key"),
  /** Who deployed it. */
  owner: text("owner"),
  deployedAt: time("deployed_at_ms"),
};

/** A contract; its signature vouches for its hash. */
export type Contract = RecordOf<typeof columns>;

declare module "../../database/schema.ts" {
  interface Schema {
    dapp_contracts: RowOf<typeof columns> & PositionColumn & TagColumn;
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
export interface DappStore {
  list(request: PageRequest, principal: Principal): Promise<Page<Stored<Contract>>>;
  count(principal?: Principal): Promise<number>;
  /** Keeps a contract, within a transaction. */
  insert(transaction: WriteTransaction, contract: Contract): Promise<void>;
}

/** Makes the store of the service on the store of all. */
export function createDappStore(store: Store): DappStore {
  const contracts = openTable(store, contractTable);
  return {
    list: (request, principal) => contracts.list(request, {}, principal),
    count: (principal) => contracts.count({}, principal),
    insert: contracts.insert,
  };
}

/** What the contract service keeps: hashes of contracts with their signatures. */
import type { RecordOf } from "../../records/columns.ts";
import { openTable } from "../../records/record-table.ts";
import type { Store } from "../../store/store.ts";
import { contractTable } from "./tables.ts";

/** A contract; its signature vouches for its hash. */
export type Contract = RecordOf<typeof contractTable.columns>;

/** The contracts of the service. */
export type DappStore = ReturnType<typeof createDappStore>;

/** Makes the store of the service on the store of all. */
export function createDappStore(store: Store) {
  return openTable(store, contractTable);
}

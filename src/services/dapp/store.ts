/** The store of the contract service: hashes of contracts with their signatures. */
import type { RecordOf } from "../../records/columns.ts";
import { openTable } from "../../records/record-table.ts";
import type { Store } from "../../store/store.ts";
import { contractTable } from "./tables.ts";

/** A contract; its signature protects its hash. */
export type Contract = RecordOf<typeof contractTable.columns>;

/** The contracts of the service. */
export type DappStore = ReturnType<typeof createDappStore>;

/** Creates the service's store on top of the shared store. */
export function createDappStore(store: Store) {
  return openTable(store, contractTable);
}

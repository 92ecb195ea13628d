/** Stores validators; blocks and peers have their own stores. */
import type { RecordOf } from "../../records/columns.ts";
import { type Principal, systemPrincipal } from "../../records/ownership.ts";
import { openTable } from "../../records/record-table.ts";
import type { Store } from "../../store/store.ts";
import { createBlockStore } from "./block-store.ts";
import { createPeerStore } from "./peer-store.ts";
import { validatorTable } from "./tables.ts";

export type Validator = RecordOf<typeof validatorTable.columns>;

export type ChainStore = ReturnType<typeof createChainStore>;

export function createChainStore(store: Store) {
  const validators = openTable(store, validatorTable);
  return {
    ...createBlockStore(store),
    peers: createPeerStore(store),
    validators,
    /**
     * Finds a validator that the principal may use.
     *
     * @param address empty for the principal's first validator
     * @throws RecordDamagedError
     */
    async findValidator(
      address: string,
      principal: Principal = systemPrincipal,
    ): Promise<Validator | undefined> {
      const { owner } = principal;
      if (address !== "") return validators.findIntact({ address, ...(owner !== undefined && { owner }) });
      const [first] = (await validators.list({ after: 0, limit: 1 }, { principal })).rows;
      return first && validators.requireIntact(first);
    },
  };
}

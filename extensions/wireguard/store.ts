/** Stores the WireGuard keys of tunnels and their last epochs, but no pre-shared keys. */
import { sql } from "kysely";
import type { RecordOf } from "../../src/records/columns.ts";
import { openTable } from "../../src/records/record-table.ts";
import type { Store } from "../../src/store/store.ts";
import type { WriteTransaction } from "../../src/store/write-transaction.ts";
import { peerTable } from "./tables.ts";

export type PeerRecord = RecordOf<typeof peerTable.columns>;

export type PeerStore = ReturnType<typeof createPeerStore>;

export function createPeerStore(store: Store) {
  const peers = openTable(store, peerTable);
  return {
    ...peers,
    /** @throws RecordDamagedError */
    find: (tunnelId: string, { db }: Partial<Pick<WriteTransaction, "db">> = {}) =>
      peers.findIntact({ tunnelId }, { ...(db && { db }) }),
    /** Lists records in order of registration, with their positions. */
    async listAfter(position: number, limit: number) {
      const found = await peers.listWhere(sql`position > ${position}`, sql`position`, limit);
      return found.map((one) => ({ ...one, position: Number(one.row.position) }));
    },
    /** Removes a record within a transaction, even a damaged one. */
    async removeAny(transaction: WriteTransaction, wanted: Partial<PeerRecord>): Promise<void> {
      const found = await peers.find(wanted, { db: transaction.db });
      if (found !== undefined) await peers.remove(transaction, found);
    },
  };
}

/** Stores what other servers of the chain reported. */
import { fromRow, type RecordOf, toRow } from "../../records/columns.ts";
import { changeCounts, readCount } from "../../records/list-counts.ts";
import { countedLists } from "../../records/ownership.ts";
import { cutPage, type Page, type PageRequest } from "../../records/pages.ts";
import { nextPosition } from "../../records/positions.ts";
import { recordQuota } from "../../records/quota.ts";
import type { Store } from "../../store/store.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { peerColumns } from "./tables.ts";

export type Peer = RecordOf<typeof peerColumns>;

/** List name in page tokens and counts. */
const peerList = "blockchain_peers";
/** Quota for the peers that an owner was the first to connect to. */
export const peerQuota = recordQuota(peerList, "peers");

export function createPeerStore({ reader }: Store) {
  return {
    nameList: () => peerList,
    async list(request: PageRequest): Promise<Page<Peer>> {
      const rows = await reader
        .selectFrom("blockchain_peers")
        .selectAll()
        .where("position", ">", request.after)
        .orderBy("position")
        .limit(request.limit + 1)
        .execute();
      const page = cutPage(rows, request, peerList, ({ position }) => position);
      return { ...page, rows: page.rows.map((row) => fromRow(peerColumns, row)) };
    },
    count: () => readCount(reader, peerList),
    /** @param db the connection of a transaction; default: the reader */
    async find(address: string, db = reader): Promise<Peer | undefined> {
      const query = db.selectFrom("blockchain_peers").selectAll().where("address", "=", address);
      const row = await query.executeTakeFirst();
      return row && fromRow(peerColumns, row);
    },
    /**
     * Stores a peer, within a transaction.
     *
     * @param owner the caller, whose quota a new peer counts against
     */
    async save({ db, requireRoom }: WriteTransaction, peer: Peer, owner: string): Promise<void> {
      const row = toRow(peerColumns, peer);
      const { numUpdatedRows } = await db
        .updateTable("blockchain_peers")
        .set(row)
        .where("address", "=", peer.address)
        .executeTakeFirstOrThrow();
      if (numUpdatedRows > 0n) return;
      await requireRoom(peerQuota, owner);
      const position = await nextPosition(db, peerList);
      await db
        .insertInto("blockchain_peers")
        .values({ position, ...row })
        .execute();
      await changeCounts(db, countedLists([peerList], { owner }), 1);
    },
  };
}

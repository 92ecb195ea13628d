/** What the chain service keeps of other servers of the chain. */
import { column, fromRow, type RecordOf, type RowOf, toRow } from "../../records/columns.ts";
import { changeCounts, readCount } from "../../records/list-counts.ts";
import { countedLists } from "../../records/ownership.ts";
import { cutPage, type Page, type PageRequest } from "../../records/pages.ts";
import { nextPosition } from "../../records/positions.ts";
import { recordQuota } from "../../records/quota.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";

/** Peers have no owner and no tag: each call of ConnectPeer asks the peer again. */
const columns = {
  address: column.text("address"),
  /** Whether it answered when it was last called. */
  isConnected: column.flag("is_connected"),
  height: column.optionalInteger("height"),
  lastSeenAt: column.optionalTime("last_seen_at_ms"),
};

/** Another server of the chain. */
export type Peer = RecordOf<typeof columns>;

declare module "../../database/schema.ts" {
  interface Schema {
    blockchain_peers: RowOf<typeof columns> & { position: number };
  }
}

/** Names the list of peers, for page tokens and counts. */
export const peerList = "blockchain_peers";
/** Counts the peers that an owner was the first to connect. */
export const peerQuota = recordQuota(peerList, "peers");

/** Makes the store of peers on the store of all. */
export function createPeerStore({ reader }: Store) {
  return {
    async listPeers(request: PageRequest): Promise<Page<Peer>> {
      const rows = await reader
        .selectFrom("blockchain_peers")
        .selectAll()
        .where("position", ">", request.after)
        .orderBy("position")
        .limit(request.limit + 1)
        .execute();
      const page = cutPage(rows, request, peerList, ({ position }) => position);
      return { ...page, rows: page.rows.map((row) => fromRow(columns, row)) };
    },
    countPeers: () => readCount(reader, peerList),
    /** @param db of a transaction; else the reader */
    async findPeer(address: string, db = reader): Promise<Peer | undefined> {
      const query = db.selectFrom("blockchain_peers").selectAll().where("address", "=", address);
      const row = await query.executeTakeFirst();
      return row && fromRow(columns, row);
    },
    /** Keeps what is known of a peer, within a transaction. @param owner who asks; a new peer counts for them */
    async savePeer({ db, requireRoom }: WriteTransaction, peer: Peer, owner: string): Promise<void> {
      const row = toRow(columns, peer);
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

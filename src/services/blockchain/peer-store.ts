/** What the chain service keeps of other servers of the chain. */
import {
  flag,
  fromRow,
  optionalInteger,
  optionalTime,
  type PositionColumn,
  type RecordOf,
  type RowOf,
  text,
  toRow,
} from "../../records/columns.ts";
import { changeCounts, readCount } from "../../records/list-counts.ts";
import { countedLists } from "../../records/ownership.ts";
import { cutPage, type Page, type PageRequest } from "../../records/pages.ts";
import { nextPosition } from "../../records/positions.ts";
import { recordQuota } from "../../records/quota.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";

/** Peers have no owner and no tag: each call of ConnectPeer asks the peer again. */
const columns = {
  address: text("address"),
  /** Whether it answered when it was last called. */
  isConnected: flag("is_connected"),
  height: optionalInteger("height"),
  lastSeenAt: optionalTime("last_seen_at_ms"),
};

/** Another server of the chain. */
export type Peer = RecordOf<typeof columns>;

declare module "../../database/schema.ts" {
  interface Schema {
    blockchain_peers: RowOf<typeof columns> & PositionColumn;
  }
}

/** Names the list of peers, for page tokens and counts. */
export const peerList = "blockchain_peers";

/** Counts the peers that an owner was the first to connect. */
export const peerQuota = recordQuota(peerList, "peers");

/** The peers of the service. */
export interface PeerStore {
  listPeers(request: PageRequest): Promise<Page<Peer>>;
  countPeers(): Promise<number>;
  /** @param db of a transaction; else the reader */
  findPeer(address: string, db?: WriteTransaction["db"]): Promise<Peer | undefined>;
  /** Keeps what is known of a peer, within a transaction. @param owner who asks; a new peer counts for them */
  savePeer(transaction: WriteTransaction, peer: Peer, owner: string): Promise<void>;
}

/** Makes the store of peers on the store of all. */
export function createPeerStore(store: Store): PeerStore {
  return {
    async listPeers(request) {
      const rows = await store.reader
        .selectFrom("blockchain_peers")
        .selectAll()
        .where("position", ">", request.after)
        .orderBy("position")
        .limit(request.limit + 1)
        .execute();
      const page = cutPage(rows, request, peerList, ({ position }) => position);
      return { ...page, rows: page.rows.map((row) => fromRow(columns, row)) };
    },
    countPeers: () => readCount(store.reader, peerList),
    async findPeer(address, db = store.reader) {
      const row = await db
        .selectFrom("blockchain_peers")
        .selectAll()
        .where("address", "=", address)
        .executeTakeFirst();
      return row && fromRow(columns, row);
    },
    async savePeer({ db, requireRoom }, peer, owner) {
      const row = toRow(columns, peer);
      const { numUpdatedRows } = await db
        .updateTable("blockchain_peers")
        .set(row)
        .where("address", "=", peer.address)
        .executeTakeFirstOrThrow();
      if (numUpdatedRows > 0n) return;
      await requireRoom(peerQuota, owner);
      const position = await nextPosition(db, "blockchain_peers");
      await db
        .insertInto("blockchain_peers")
        .values({ position, ...row })
        .execute();
      await changeCounts(db, countedLists([peerList], { owner }), 1);
    },
  };
}

/** What the gateway keeps: tunnels with their addresses, and hashes of used ciphertexts. Session keys are not among it. */
import { sql } from "kysely";
import {
  bytes,
  flag,
  integer,
  type PositionColumn,
  type RecordOf,
  type RowOf,
  type TagColumn,
  text,
  time,
} from "../../records/columns.ts";
import { isSeenBy, type Principal, seenBy } from "../../records/ownership.ts";
import type { Page, PageRequest } from "../../records/pages.ts";
import type { Quota } from "../../records/quota.ts";
import { openTable, type Stored, type TableDeclaration } from "../../records/record-table.ts";
import type { SealedKey } from "../../secrets/sealed-keys.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";
import { type CiphertextStore, createCiphertextStore, forgetCiphertexts } from "./ciphertext-store.ts";

/** The algorithms of the gateway. */
export const kemAlgorithm = "ML-KEM-1024";
export const identityAlgorithm = "ML-DSA-65";

const columns = {
  tunnelId: text("tunnel_id"),
  peerName: text("peer_name"),
  /** The last 16 bits of its address. */
  addressNumber: integer("address_number"),
  /** Raw ML-KEM-1024. */
  publicKey: bytes("public_key"),
  /** Whether the gateway made the peer's pair, and keeps its secret key. */
  isServerHeld: flag("is_server_held"),
  /** Who registered it. */
  owner: text("owner"),
  createdAt: time("created_at_ms"),
};

/** A tunnel. */
export type Tunnel = RecordOf<typeof columns>;

declare module "../../database/schema.ts" {
  interface Schema {
    vpn_tunnels: RowOf<typeof columns> & PositionColumn & TagColumn;
  }
}

/** Names the list of all tunnels, for page tokens and counts. */
export const tunnelList = "vpn_tunnels";

/** Counts the tunnels of an owner, each of which has one of the 65,533 addresses. */
export const tunnelQuota: Quota = { list: tunnelList, noun: "tunnels", kind: "tunnels" };

const tunnelTable: TableDeclaration<typeof columns> = {
  name: tunnelList,
  columns,
  key: ["tunnelId"],
  owner: "owner",
  quota: tunnelQuota,
  describe: ({ tunnelId }) => `tunnel ${tunnelId}`,
};

/** Names the sealed secret key of a peer whose pair the gateway made. */
export function nameSealedKey(tunnel: Tunnel): SealedKey {
  const { tunnelId, publicKey } = tunnel;
  return {
    record: tunnelTable.describe(tunnel),
    identity: nameSecret(tunnelId),
    algorithm: kemAlgorithm,
    publicKey,
  };
}

function nameSecret(tunnelId: string): string {
  return `vpn_tunnels/${tunnelId}/secret-key`;
}

/** The gateway is 10.8.0.1; the first and the last address of the network are nobody's. */
const firstAddress = 2;
const lastAddress = 0xfffe;

/** An address in 10.8.0.0/16. */
export function formatAddress({ addressNumber }: Tunnel): string {
  return `10.8.${addressNumber >> 8}.${addressNumber & 0xff}`;
}

/** The tunnels of the gateway; what was changed behind our back throws RecordDamagedError. */
export interface VpnStore extends CiphertextStore {
  find(tunnelId: string, principal: Principal): Promise<Tunnel | undefined>;
  /** Tells which of these tunnels are there no more. */
  findMissing(tunnelIds: readonly string[]): Promise<string[]>;
  list(request: PageRequest, principal: Principal): Promise<Page<Stored<Tunnel>>>;
  count(principal?: Principal): Promise<number>;
  /** Finds an address that nobody has, within a transaction. @returns undefined if there is none */
  findFreeAddress(transaction: WriteTransaction): Promise<number | undefined>;
  /** Keeps a tunnel, within a transaction. @param secret of a pair that the gateway made */
  insert(transaction: WriteTransaction, tunnel: Tunnel, secret: Uint8Array | undefined): Promise<void>;
  /** Lets go of a tunnel and its address, within a transaction. @returns false if there is none */
  remove(transaction: WriteTransaction, tunnelId: string, principal: Principal): Promise<boolean>;
}

/** SQLite takes 32,766 values in a statement. */
const lookedUpAtOnce = 1000;

/** Makes the store of the service on the store of all. */
export function createVpnStore(store: Store): VpnStore {
  const tunnels = openTable(store, tunnelTable);
  return {
    ...createCiphertextStore(store),
    find: async (tunnelId, principal) => seenBy(principal, await tunnels.findIntact({ tunnelId })),
    async findMissing(tunnelIds) {
      const found = new Set<string>();
      for (let i = 0; i < tunnelIds.length; i += lookedUpAtOnce) {
        const rows = await store.reader
          .selectFrom("vpn_tunnels")
          .select("tunnel_id")
          .where("tunnel_id", "in", tunnelIds.slice(i, i + lookedUpAtOnce))
          .execute();
        for (const row of rows) found.add(row.tunnel_id);
      }
      return tunnelIds.filter((tunnelId) => !found.has(tunnelId));
    },
    list: (request, principal) => tunnels.list(request, {}, principal),
    count: (principal) => tunnels.count({}, principal),
    async findFreeAddress({ db }) {
      // The address after one that is taken, or the first: the lowest of these that nobody has.
      const { rows } = await sql<{ free: number | null }>`
        select min(candidate) as free
        from (
          select ${firstAddress} as candidate
          union all
          select address_number + 1 from vpn_tunnels where address_number < ${lastAddress}
        ) as candidates
        where candidate not in (select address_number from vpn_tunnels)`.execute(db);
      return rows[0]?.free ?? undefined;
    },
    async insert(transaction, tunnel, secret) {
      await tunnels.insert(transaction, tunnel);
      if (secret !== undefined) await transaction.putSecret(nameSealedKey(tunnel).identity, secret);
    },
    async remove(transaction, tunnelId, principal) {
      // One that somebody changed can still be got rid of.
      const found = await tunnels.find({ tunnelId }, transaction.db);
      if (found === undefined || !isSeenBy(principal, found.record)) return false;
      await tunnels.remove(transaction, found);
      await transaction.eraseSecret(nameSecret(tunnelId));
      await forgetCiphertexts(transaction, found.record);
      return true;
    },
  };
}

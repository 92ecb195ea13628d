/** What the gateway keeps: tunnels with their addresses, and hashes of used ciphertexts. Session keys are not among it. */
import { hash } from "node:crypto";
import { sql } from "kysely";
import { readTime } from "../../database/row-values.ts";
import type { VpnTunnelsTable } from "../../database/schema.ts";
import { changeCounts, readCount, resetCounts } from "../../records/list-counts.ts";
import {
  countedLists,
  listSeenBy,
  type Principal,
  seenBy,
  systemPrincipal,
} from "../../records/ownership.ts";
import { cutPage, type Page, type PageRequest } from "../../records/pages.ts";
import { nextPosition } from "../../records/positions.ts";
import { type Quota, recordQuota } from "../../records/quota.ts";
import type { Marked } from "../../records/tag.ts";
import type { SealedKey } from "../../secrets/sealed-keys.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";
import type { KeyForm } from "./session-keys.ts";

/** The algorithms of the gateway. */
export const kemAlgorithm = "ML-KEM-1024";
export const identityAlgorithm = "ML-DSA-65";

/** A tunnel. */
export interface Tunnel {
  readonly tunnelId: string;
  readonly peerName: string;
  /** The last 16 bits of its address. */
  readonly addressNumber: number;
  /** Raw ML-KEM-1024. */
  readonly publicKey: Uint8Array;
  /** Whether the gateway made the peer's pair, and keeps its secret key. */
  readonly isServerHeld: boolean;
  /** Who registered it. */
  readonly owner: string;
  readonly createdAt: Date;
}

/** Names the list of all tunnels, for page tokens and counts. */
export const tunnelList = "vpn_tunnels";

/** Counts the tunnels of an owner, each of which has one of the 65,533 addresses. */
export const tunnelQuota: Quota = { list: tunnelList, noun: "tunnels", kind: "tunnels" };

/** Names the sealed secret key of a peer whose pair the gateway made. */
export function nameSealedKey({ tunnelId, publicKey }: Tunnel): SealedKey {
  const identity = `vpn_tunnels/${tunnelId}/secret-key`;
  return { record: `tunnel ${tunnelId}`, identity, algorithm: kemAlgorithm, publicKey };
}

/** The gateway is 10.8.0.1; the first and the last address of the network are nobody's. */
const firstAddress = 2;
const lastAddress = 0xfffe;

/** Ciphertexts that a tunnel can use: one megabyte of the store. */
export const maxCiphertexts = 10_000;

/** Counts the used ciphertexts of an owner. Those of shared keys stay when their tunnel goes. */
const ciphertextQuota = recordQuota("vpn_used_ciphertexts", "handshake ciphertexts");

/** A ciphertext that a peer gives for a session. */
export interface GivenCiphertext {
  readonly tunnelId: string;
  readonly ciphertext: Uint8Array;
  readonly keyForm: KeyForm;
}

/** What came of using a ciphertext. */
export type CiphertextUse = "FIRST_USE" | "USED_BEFORE" | "LIMIT_REACHED" | "TUNNEL_MISSING";

/** An address in 10.8.0.0/16. */
export function formatAddress({ addressNumber }: Tunnel): string {
  return `10.8.${addressNumber >> 8}.${addressNumber & 0xff}`;
}

/** The tunnels of the gateway; what was changed behind our back throws RecordDamaged. */
export interface VpnStore {
  find(tunnelId: string, principal: Principal): Promise<Tunnel | undefined>;
  /** Tells which of these tunnels are there no more. */
  findMissing(tunnelIds: readonly string[]): Promise<string[]>;
  list(request: PageRequest, principal: Principal): Promise<Page<Marked<Tunnel>>>;
  count(principal?: Principal): Promise<number>;
  /** Finds an address that nobody has, within a transaction. @returns undefined if there is none */
  findFreeAddress(transaction: WriteTransaction): Promise<number | undefined>;
  /** Keeps a tunnel, within a transaction. @param secret of a pair that the gateway made */
  insert(transaction: WriteTransaction, tunnel: Tunnel, secret: Uint8Array | undefined): Promise<void>;
  /** Lets go of a tunnel and its address, within a transaction. @returns false if there is none */
  remove(transaction: WriteTransaction, tunnelId: string, principal: Principal): Promise<boolean>;
  /** Tells whether any tunnel used a ciphertext. */
  hasUsedCiphertext(ciphertext: Uint8Array): Promise<boolean>;
  /**
   * Marks a ciphertext as used, for all tunnels, within a transaction. Nothing binds a shared key to its tunnel: in
   * another one, the ciphertext would open a session that reads recorded packets of the first.
   */
  useCiphertext(transaction: WriteTransaction, given: GivenCiphertext): Promise<CiphertextUse>;
}

/** Makes the store of the service on the store of all. */
export function createVpnStore(store: Store): VpnStore {
  return {
    async find(tunnelId, principal) {
      const row = await store.reader
        .selectFrom("vpn_tunnels")
        .selectAll()
        .where("tunnel_id", "=", tunnelId)
        .executeTakeFirst();
      const tunnel = row && toTunnel(row);
      if (tunnel) store.requireTagged(`tunnel ${tunnelId}`, listTaggedFields(tunnel), row.record_tag);
      return seenBy(principal, tunnel);
    },
    async findMissing(tunnelIds) {
      const found = new Set<string>();
      for (let i = 0; i < tunnelIds.length; i += lookedUpAtOnce) {
        const some = tunnelIds.slice(i, i + lookedUpAtOnce);
        const rows = await store.reader
          .selectFrom("vpn_tunnels")
          .select("tunnel_id")
          .where("tunnel_id", "in", some)
          .execute();
        for (const row of rows) found.add(row.tunnel_id);
      }
      return tunnelIds.filter((tunnelId) => !found.has(tunnelId));
    },
    async list(request, principal) {
      let query = store.reader.selectFrom("vpn_tunnels").selectAll().where("position", ">", request.after);
      if (principal.owner !== undefined) query = query.where("owner", "=", principal.owner);
      const rows = await query
        .orderBy("position")
        .limit(request.limit + 1)
        .execute();
      const page = cutPage(rows, request, listSeenBy(principal, tunnelList), ({ position }) => position);
      const pack = (row: VpnTunnelsTable): Marked<Tunnel> => {
        const tunnel = toTunnel(row);
        return { ...tunnel, isIntact: store.isTagged(listTaggedFields(tunnel), row.record_tag) };
      };
      return { ...page, rows: page.rows.map(pack) };
    },
    count: (principal = systemPrincipal) => readCount(store.reader, listSeenBy(principal, tunnelList)),
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
    async insert({ db, putSecret, requireRoom }, tunnel, secret) {
      await requireRoom(tunnelQuota, tunnel.owner);
      await db
        .insertInto("vpn_tunnels")
        .values({
          position: await nextPosition(db, "vpn_tunnels"),
          tunnel_id: tunnel.tunnelId,
          peer_name: tunnel.peerName,
          address_number: tunnel.addressNumber,
          public_key: tunnel.publicKey,
          is_kept: tunnel.isServerHeld ? 1 : 0,
          owner: tunnel.owner,
          created_at_ms: tunnel.createdAt.getTime(),
          record_tag: store.tagRecord(listTaggedFields(tunnel)),
        })
        .execute();
      await changeCounts(db, countedLists([tunnelList], tunnel), 1);
      if (secret !== undefined) await putSecret(nameSealedKey(tunnel).identity, secret);
    },
    async remove({ db, eraseSecret }, tunnelId, principal) {
      const row = await db
        .selectFrom("vpn_tunnels")
        .selectAll()
        .where("tunnel_id", "=", tunnelId)
        .executeTakeFirst();
      const tunnel = seenBy(principal, row && toTunnel(row));
      if (row === undefined || tunnel === undefined) return false;
      await db.deleteFrom("vpn_tunnels").where("tunnel_id", "=", tunnelId).execute();
      // One that somebody changed can still be got rid of.
      if (store.isTagged(listTaggedFields(tunnel), row.record_tag))
        await changeCounts(db, countedLists([tunnelList], tunnel), -1);
      else await recount(db);
      await eraseSecret(`vpn_tunnels/${tunnelId}/secret-key`);
      // Keys per direction are bound to the tunnel, and a tunnelId is never given to another one.
      const { numDeletedRows } = await db
        .deleteFrom("vpn_used_ciphertexts")
        .where("tunnel_id", "=", tunnelId)
        .where("key_form", "=", "PER_DIRECTION")
        .executeTakeFirstOrThrow();
      if (numDeletedRows > 0n)
        await changeCounts(db, [listSeenBy(tunnel, ciphertextQuota.list)], -Number(numDeletedRows));
      return true;
    },
    hasUsedCiphertext: (ciphertext) => isUsed(store.reader, hashCiphertext(ciphertext)),
    async useCiphertext({ db, requireRoom }, { tunnelId, ciphertext, keyForm }) {
      const tunnel = await db
        .selectFrom("vpn_tunnels")
        .select("owner")
        .where("tunnel_id", "=", tunnelId)
        .executeTakeFirst();
      if (tunnel === undefined) return "TUNNEL_MISSING";
      const ciphertextHash = hashCiphertext(ciphertext);
      if (await isUsed(db, ciphertextHash)) return "USED_BEFORE";
      await requireRoom(ciphertextQuota, tunnel.owner);
      const { used } = await db
        .selectFrom("vpn_used_ciphertexts")
        .select((row) => row.fn.countAll<number>().as("used"))
        .where("tunnel_id", "=", tunnelId)
        .executeTakeFirstOrThrow();
      if (Number(used) >= maxCiphertexts) return "LIMIT_REACHED";
      await db
        .insertInto("vpn_used_ciphertexts")
        .values({ tunnel_id: tunnelId, key_form: keyForm, ciphertext_hash: ciphertextHash })
        .execute();
      await changeCounts(db, [listSeenBy(tunnel, ciphertextQuota.list)], 1);
      return "FIRST_USE";
    },
  };
}

function hashCiphertext(ciphertext: Uint8Array): string {
  return hash("sha256", ciphertext, "hex");
}

async function isUsed(
  db: Pick<WriteTransaction["db"], "selectFrom">,
  ciphertextHash: string,
): Promise<boolean> {
  const row = await db
    .selectFrom("vpn_used_ciphertexts")
    .select("tunnel_id")
    .where("ciphertext_hash", "=", ciphertextHash)
    .executeTakeFirst();
  return row !== undefined;
}

/** Counts all tunnels anew: in whose list a changed one was before it was changed, nobody knows. */
async function recount(db: WriteTransaction["db"]): Promise<void> {
  const groups = await db
    .selectFrom("vpn_tunnels")
    .select(["owner", (row) => row.fn.countAll<number>().as("count")])
    .groupBy("owner")
    .execute();
  const counts = new Map<string, number>();
  for (const { owner, count } of groups)
    for (const list of countedLists([tunnelList], { owner }))
      counts.set(list, (counts.get(list) ?? 0) + count);
  await resetCounts(db, tunnelList, counts);
}

/** SQLite takes 32,766 values in a statement. */
const lookedUpAtOnce = 1000;

/** All that a tunnel's tag binds; in this order for the life of a store. */
function listTaggedFields(tunnel: Tunnel): (string | number | Uint8Array)[] {
  const { tunnelId, peerName, addressNumber, publicKey, isServerHeld, owner, createdAt } = tunnel;
  return [
    "vpn_tunnels",
    tunnelId,
    peerName,
    addressNumber,
    publicKey,
    isServerHeld ? 1 : 0,
    owner,
    createdAt.getTime(),
  ];
}

function toTunnel(row: VpnTunnelsTable): Tunnel {
  return {
    tunnelId: row.tunnel_id,
    peerName: row.peer_name,
    addressNumber: row.address_number,
    publicKey: row.public_key,
    isServerHeld: row.is_kept === 1,
    owner: row.owner,
    createdAt: readTime(row.created_at_ms),
  };
}

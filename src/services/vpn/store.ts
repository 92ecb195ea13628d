/** Stores tunnels with their addresses, and hashes of used ciphertexts, but no session keys. */
import { sql } from "kysely";
import type { RecordOf } from "../../records/columns.ts";
import type { Principal } from "../../records/ownership.ts";
import { openTable } from "../../records/record-table.ts";
import type { Store } from "../../store/store.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { createCiphertextStore, forgetCiphertexts } from "./ciphertext-store.ts";
import { tunnelTable } from "./tables.ts";

export const kemAlgorithm = "ML-KEM-1024";
export const identityAlgorithm = "ML-DSA-65";

export type Tunnel = RecordOf<typeof tunnelTable.columns>;

/** Network of all tunnels, and the gateway's address in it. */
export const tunnelNetwork = "10.8.0.0/16";
export const gatewayAddress = "10.8.0.1";

/** The first and last addresses of the network stay unused. */
const firstAddress = 2;
const lastAddress = 0xfffe;

/** Formats an address in 10.8.0.0/16. */
export function formatAddress({ addressNumber }: Pick<Tunnel, "addressNumber">): string {
  return `10.8.${addressNumber >> 8}.${addressNumber & 0xff}`;
}

/** SQLite allows at most 32,766 values in a statement. */
const lookedUpAtOnce = 1000;

export type VpnStore = ReturnType<typeof createVpnStore>;

export function createVpnStore(store: Store) {
  const tunnels = openTable(store, tunnelTable);
  return {
    ...createCiphertextStore(store),
    ...tunnels,
    /** @throws RecordDamagedError */
    find: (tunnelId: string, principal: Principal, { db }: Partial<Pick<WriteTransaction, "db">> = {}) =>
      tunnels.findIntact({ tunnelId }, { principal, ...(db && { db }) }),
    /** Returns the given tunnels that no longer exist. */
    async findMissing(tunnelIds: readonly string[]): Promise<string[]> {
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
    /**
     * Finds a free address, within a transaction.
     *
     * @returns undefined if none is free
     */
    async findFreeAddress({ db }: WriteTransaction): Promise<number | undefined> {
      // Candidates are the first address and each address after a used one; the lowest free candidate wins.
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
    /**
     * Removes a tunnel and frees its address, within a transaction.
     *
     * @returns false if no such tunnel exists
     */
    async remove(transaction: WriteTransaction, tunnelId: string, principal: Principal): Promise<boolean> {
      // Even a damaged tunnel can be removed.
      const found = await tunnels.find({ tunnelId }, { principal, db: transaction.db });
      if (found === undefined) return false;
      await tunnels.remove(transaction, found);
      await forgetCiphertexts(transaction, found.record);
      return true;
    },
  };
}

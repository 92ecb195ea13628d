/** Stores a hash of each ciphertext that a peer sent, so that none opens a second session. */
import { hash } from "node:crypto";
import { countForOwner } from "../../records/list-counts.ts";
import { recordQuota } from "../../records/quota.ts";
import type { Store } from "../../store/store.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import type { KeyForm } from "./session-keys.ts";

/** Maximum ciphertexts per tunnel: they take one megabyte of the store. */
export const maxCiphertexts = 10_000;
/** Quota for an owner's used ciphertexts. Ciphertexts of shared keys stay when their tunnel is removed. */
const ciphertextQuota = recordQuota("vpn_used_ciphertexts", "handshake ciphertexts");

/** A ciphertext that a peer sent for a session. */
export interface GivenCiphertext {
  readonly tunnelId: string;
  readonly ciphertext: Uint8Array;
  readonly keyForm: KeyForm;
}

export type CiphertextUse = "FIRST_USE" | "USED_BEFORE" | "LIMIT_REACHED" | "TUNNEL_MISSING";

export function createCiphertextStore({ reader }: Store) {
  return {
    /** Returns whether any tunnel has used a ciphertext. */
    hasUsedCiphertext: (ciphertext: Uint8Array) => isUsed(reader, hashCiphertext(ciphertext)),
    /**
     * Marks a ciphertext as used, for all tunnels, within a transaction. A shared key is not bound to its
     * tunnel: in another tunnel, the ciphertext would open a session that can read recorded packets of the
     * first.
     */
    async useCiphertext(
      { db, requireRoom }: WriteTransaction,
      { tunnelId, ciphertext, keyForm }: GivenCiphertext,
    ): Promise<CiphertextUse> {
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
      const row = { tunnel_id: tunnelId, key_form: keyForm, ciphertext_hash: ciphertextHash };
      await db.insertInto("vpn_used_ciphertexts").values(row).execute();
      await countForOwner(db, ciphertextQuota, tunnel.owner, 1);
      return "FIRST_USE";
    },
  };
}

/**
 * Removes a tunnel's ciphertexts of per-direction keys: they are bound to the tunnel, and a tunnelId is never
 * reused.
 */
export async function forgetCiphertexts(
  { db }: WriteTransaction,
  tunnel: { readonly tunnelId: string; readonly owner: string },
): Promise<void> {
  const { numDeletedRows } = await db
    .deleteFrom("vpn_used_ciphertexts")
    .where("tunnel_id", "=", tunnel.tunnelId)
    .where("key_form", "=", "PER_DIRECTION")
    .executeTakeFirstOrThrow();
  if (numDeletedRows > 0n) await countForOwner(db, ciphertextQuota, tunnel.owner, -Number(numDeletedRows));
}

function hashCiphertext(ciphertext: Uint8Array): string {
  return hash("sha256", ciphertext, "hex");
}

async function isUsed(db: WriteTransaction["db"], ciphertextHash: string): Promise<boolean> {
  const row = await db
    .selectFrom("vpn_used_ciphertexts")
    .select("tunnel_id")
    .where("ciphertext_hash", "=", ciphertextHash)
    .executeTakeFirst();
  return row !== undefined;
}

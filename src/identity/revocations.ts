/** Access tokens that were revoked one by one (RFC 7009). Tokens of removed users and clients need no entry here. */
import type { Store } from "../store/store.ts";
import { maxClockDifferenceMs } from "./clock-difference.ts";

const safety = { priority: "safety" } as const;

/** A token to revoke, by the client that it was issued to. */
export interface RevocationInput {
  readonly tokenId: string;
  readonly expiresAt: Date;
  readonly client: string;
  /** Where the call came from. */
  readonly origin: { readonly clientAddress: string; readonly requestId: string };
}

/** The revoked tokens of a store. */
export type Revocations = ReturnType<typeof createRevocations>;

/** Creates the list on the shared store. */
export function createRevocations(store: Store) {
  return {
    async includesAny(tokenIds: readonly string[]): Promise<boolean> {
      const query = store.reader
        .selectFrom("revoked_tokens")
        .select("token_id")
        .where("token_id", "in", tokenIds)
        .limit(1);
      return (await query.executeTakeFirst()) !== undefined;
    },
    /** Revokes a token for a client, and forgets those that have ended for all servers. A second time changes nothing. */
    add: ({ tokenId, expiresAt, client, origin }: RevocationInput, now: Date) =>
      store.write(async ({ db, auditIdentity }) => {
        const endedMs = now.getTime() - maxClockDifferenceMs;
        await db.deleteFrom("revoked_tokens").where("expires_at_ms", "<", endedMs).execute();
        const added = await db
          .insertInto("revoked_tokens")
          .values({ token_id: tokenId, expires_at_ms: expiresAt.getTime() })
          .onConflict((conflict) => conflict.doNothing())
          .executeTakeFirst();
        if (!added.numInsertedOrUpdatedRows) return;
        const entry = { keyId: client, operation: "REVOKE_TOKEN", user: client, details: `token=${tokenId}` };
        await auditIdentity({ ...entry, outcome: "OK", ...origin });
      }, safety),
  };
}

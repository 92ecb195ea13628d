/** Access tokens that were revoked one by one (RFC 7009). Tokens of removed users and clients need no entry here. */
import type { Store } from "../store/store.ts";

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
    /** Revokes a token, and forgets those that have ended. A second time changes nothing. */
    add: (tokenId: string, expiresAt: Date, now: Date) =>
      store.write(async ({ db }) => {
        await db.deleteFrom("revoked_tokens").where("expires_at_ms", "<", now.getTime()).execute();
        await db
          .insertInto("revoked_tokens")
          .values({ token_id: tokenId, expires_at_ms: expiresAt.getTime() })
          .onConflict((conflict) => conflict.doNothing())
          .execute();
      }),
  };
}

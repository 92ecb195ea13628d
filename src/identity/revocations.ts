/**
 * Individually revoked access tokens (RFC 7009). Tokens of removed users and clients need no entry here.
 *
 * The entries of the identity log are the list, so nobody with write access to the store can remove one
 * unnoticed.
 */
import { sql } from "kysely";
import type { Store } from "../store/store.ts";
import { revocations } from "./tables.ts";

const safety = { priority: "safety" } as const;

/** A token to revoke, and the client to which it was issued. */
export interface RevocationInput {
  readonly tokenId: string;
  readonly client: string;
  /** Where the call came from. */
  readonly origin: { readonly clientAddress: string; readonly requestId: string };
}

export type Revocations = ReturnType<typeof createRevocations>;

/** Creates the revocation list on top of the shared store. */
export function createRevocations(store: Store) {
  const includesAny = async (tokenIds: readonly string[], db: Store["reader"] = store.reader) => {
    const query = db
      .selectFrom("identity_entries")
      .select(sql`1`.as("found"))
      .where(revocations)
      .where("details", "in", tokenIds.map(describeToken))
      .limit(1);
    return (await query.executeTakeFirst()) !== undefined;
  };
  return {
    includesAny: (tokenIds: readonly string[]) => includesAny(tokenIds),
    /** Revokes a token for a client. Revoking it again changes nothing. */
    add: ({ tokenId, client, origin }: RevocationInput) =>
      store.write(async ({ db, auditIdentity }) => {
        if (await includesAny([tokenId], db)) return;
        const details = describeToken(tokenId);
        const entry = {
          keyId: client,
          operation: "REVOKE_TOKEN",
          user: client,
          outcome: "OK",
          details,
        } as const;
        await auditIdentity({ ...entry, ...origin });
      }, safety),
  };
}

/** Details of a revocation entry. Never change the format, because `includesAny` looks for it. */
function describeToken(tokenId: string): string {
  return `token=${tokenId}`;
}

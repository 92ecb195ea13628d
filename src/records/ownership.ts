/** Record ownership: users cannot see each other's records. */

/** The caller of a call, as services see it. */
export interface Principal {
  /** User name for the audit log. */
  readonly user: string;
  /** Owner of the records that the user creates: an ID that is never reused, unlike the name. */
  readonly userId: string;
  /** The owner whose records the principal can see; undefined for all records. */
  readonly owner: string | undefined;
  /**
   * The account for which an administrator or the server acts, which is `userId`: its name, or its ID if it was
   * removed. Absent for a caller who acts for themselves.
   */
  readonly actsFor?: string;
  /** For a call from a device: the only device that it may act as. */
  readonly deviceId?: string;
  /** For a call with an OAuth 2 access token: the token and its client, which may act for the user. */
  readonly access?: { readonly clientId: string; readonly tokenId: string };
  /** Client address; absent for the server's own work. */
  readonly clientAddress?: string;
  /** ID of the call; absent for the server's own work. */
  readonly requestId?: string;
}

/** Sees all records. For a service's own work, such as counting. */
export const systemPrincipal: Principal = { user: "system", userId: "system", owner: undefined };

/** Returns whether a principal can see a record. */
export function isSeenBy({ owner }: Principal, record: { readonly owner: string }): boolean {
  return owner === undefined || owner === record.owner;
}

/** Returns a record if the principal can see it. */
export function seenBy<Owned extends { readonly owner: string }>(
  principal: Principal,
  record: Owned | undefined,
): Owned | undefined {
  return record !== undefined && isSeenBy(principal, record) ? record : undefined;
}

/** Names the part of a list that a principal can see, for page tokens and counts. */
export function listSeenBy({ owner }: Pick<Principal, "owner">, list: string): string {
  return owner === undefined ? list : `${list} by=${owner}`;
}

/** Lists the counters that include a record: each of its lists, for all owners and for its own. */
export function countedLists(lists: readonly string[], { owner }: { readonly owner: string }): string[] {
  return lists.flatMap((list) => [list, listSeenBy({ owner }, list)]);
}

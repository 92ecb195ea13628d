/** Ownership of records: a user's records do not exist for other users. */

/** The caller of a call, as services know it. */
export interface Principal {
  /** The user name that the audit log shows. */
  readonly user: string;
  /** The owner of the records that the user creates: an ID that no other user ever gets, unlike the name. */
  readonly userId: string;
  /** The owner whose records the principal sees; undefined for all records. */
  readonly owner: string | undefined;
  /** For a call from a device: the one device that it may act as. */
  readonly deviceId?: string;
  /** The address that the call came from; absent for the server's own work. */
  readonly clientAddress?: string;
  /** The ID of the call; absent for the server's own work. */
  readonly requestId?: string;
}

/** Sees all records: for a service's own work, such as counting. */
export const systemPrincipal: Principal = { user: "system", userId: "system", owner: undefined };

/** Tells whether a principal sees a record. */
export function isSeenBy({ owner }: Principal, record: { readonly owner: string }): boolean {
  return owner === undefined || owner === record.owner;
}

/** Returns a record if the principal sees it. */
export function seenBy<Owned extends { readonly owner: string }>(
  principal: Principal,
  record: Owned | undefined,
): Owned | undefined {
  return record !== undefined && isSeenBy(principal, record) ? record : undefined;
}

/** Names the part of a list that a principal sees, for page tokens and counts. */
export function listSeenBy({ owner }: Pick<Principal, "owner">, list: string): string {
  return owner === undefined ? list : `${list} by=${owner}`;
}

/** The names under which a record counts: those of its lists, for all owners and for its own. */
export function countedLists(lists: readonly string[], { owner }: { readonly owner: string }): string[] {
  return lists.flatMap((list) => [list, listSeenBy({ owner }, list)]);
}

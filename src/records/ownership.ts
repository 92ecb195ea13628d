/** Whose records are whose: what somebody made is theirs, and to others it does not exist. */

/** Who makes a call, as services know them. */
export interface Principal {
  /** The name of the user, which the audit log shows. */
  readonly user: string;
  /** The owner of what they make: an ID that no other user ever gets, unlike the name. */
  readonly userId: string;
  /** Whose records they see: their own, or all if it is undefined. */
  readonly owner: string | undefined;
  /** The one device that they may act as, for a device that calls itself. */
  readonly deviceId?: string;
}

/** Sees all records: for what a service does for itself, such as counting. */
export const systemPrincipal: Principal = { user: "system", userId: "system", owner: undefined };

/** Tells whether a record exists for somebody. */
export function isSeenBy({ owner }: Principal, record: { readonly owner: string }): boolean {
  return owner === undefined || owner === record.owner;
}

/** Takes away a record that does not exist for somebody. */
export function seenBy<Owned extends { readonly owner: string }>(
  principal: Principal,
  record: Owned | undefined,
): Owned | undefined {
  return record !== undefined && isSeenBy(principal, record) ? record : undefined;
}

/** Names what somebody sees of a list, for page tokens and counts. */
export function listSeenBy({ owner }: Pick<Principal, "owner">, list: string): string {
  return owner === undefined ? list : `${list} by=${owner}`;
}

/** The names under which a record is counted: those of its lists, for all owners and for its own. */
export function countedLists(lists: readonly string[], { owner }: { readonly owner: string }): string[] {
  return lists.flatMap((list) => [list, listSeenBy({ owner }, list)]);
}

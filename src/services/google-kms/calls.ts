/** What all groups of calls need. */
import type { HandlerContext } from "@connectrpc/connect";
import { sql } from "kysely";
import { refuse, refuseField } from "../../errors.ts";
import { readPrincipal } from "../../identity/principal.ts";
import { listSeenBy, type Principal } from "../../records/ownership.ts";
import type { Narrowing } from "../../records/record-table.ts";
import { nameNarrowed } from "../../records/table-declaration.ts";
import type { PageFields } from "../fields.ts";
import type { ChangeDeps } from "../kms/change.ts";
import { readPage } from "./pages.ts";
import type { RingRecord, RingStore } from "./tables.ts";

/** The keys of the server, and the key rings. */
export interface GoogleDeps extends ChangeDeps {
  readonly rings: RingStore;
}

/** The caller of a call, and its signal. Google's interface has no idempotency keys. */
export function readCaller(context: HandlerContext) {
  return { principal: readPrincipal(context), signal: context.signal, idempotentCall: undefined };
}

/**
 * The caller, who sees only what they own. The names of other users may be equal, so that a list with all of them would
 * be ambiguous.
 */
export function readOwner(context: HandlerContext): Principal & { readonly owner: string } {
  const principal = readPrincipal(context);
  return { ...principal, owner: principal.userId };
}

/** Finds a key ring of the caller. @throws KEY_RING_NOT_FOUND */
export async function requireRing({ rings }: GoogleDeps, owner: string, name: string): Promise<RingRecord> {
  const ring = await rings.find(owner, name);
  if (ring === undefined) throw refuse("KEY_RING_NOT_FOUND", `key ring ${name} does not exist`, { name });
  return ring;
}

/** A list below a parent, as Google's clients ask for it. */
export interface ListFields extends PageFields {
  readonly filter: string;
  readonly orderBy: string;
}

/** Reads a page of the rows whose name begins with a prefix. @throws FIELD_INVALID for a filter or an order */
export function readList(
  { filter, orderBy, ...fields }: ListFields,
  { list, column, prefix }: { readonly list: string; readonly column: string; readonly prefix: string },
  principal: Principal,
) {
  if (filter !== "") throw refuseField("filter", "is not supported; leave it out");
  if (orderBy !== "")
    throw refuseField("orderBy", "is not supported; rows are in the order of their creation");
  const narrowing: Narrowing = {
    name: JSON.stringify([prefix]),
    where: sql<boolean>`substr(${sql.ref(column)}, 1, ${prefix.length}) = ${prefix}`,
  };
  return { narrowing, page: readPage(fields, nameNarrowed(listSeenBy(principal, list), narrowing)) };
}

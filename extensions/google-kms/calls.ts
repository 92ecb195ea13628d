/** The dependencies of all groups of calls. */
import type { HandlerContext } from "@connectrpc/connect";
import { sql } from "kysely";
import { refuse, refuseField } from "../../src/errors.ts";
import { readCaller as readOwnCaller, readPrincipal } from "../../src/identity/principal.ts";
import type { Principal } from "../../src/records/ownership.ts";
import type { Narrowing } from "../../src/records/record-table.ts";
import type { PageFields } from "../../src/services/fields.ts";
import type { KeyDomain } from "../../src/services/kms/domain.ts";
import { compileFilter, type FilterFields } from "./filter.ts";
import { keyRingNotFound } from "./reasons.ts";
import type { RingRecord, RingStore } from "./tables.ts";

/** The keys of the server, and the key rings. */
export type GoogleDeps = ReturnType<KeyDomain["open"]> & { readonly rings: RingStore };

/** The caller of a call, and its signal. Google's interface has no idempotency keys. */
export function readCaller(context: HandlerContext) {
  return { ...readOwnCaller(context), idempotentCall: undefined };
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
  if (ring === undefined) throw refuse(keyRingNotFound, `key ring ${name} does not exist`, { name });
  return ring;
}

/** A list below a parent, as Google's clients ask for it. */
export interface ListFields extends PageFields {
  readonly filter: string;
  readonly orderBy: string;
}

/** The rows of a list: those whose name begins with a prefix. */
interface NamedRows<Row> {
  /** The column of the name. */
  readonly column: string;
  readonly prefix: string;
  /** The fields that filters may name. */
  readonly fields: FilterFields<Row>;
}

/** Reads which rows a list has. @throws FIELD_INVALID for a filter or an order */
export function readListQuery<Row>(
  { filter, orderBy }: Pick<ListFields, "filter" | "orderBy">,
  { column, prefix, fields }: NamedRows<Row>,
  principal: Principal,
) {
  const rows = {
    name: JSON.stringify([prefix]),
    where: sql<boolean>`substr(${sql.ref(column)}, 1, ${prefix.length}) = ${prefix}`,
  };
  const narrowing = narrowList(rows, { filter, orderBy }, column);
  return { principal, narrowing, accepts: compileFilter(filter, fields) };
}

/**
 * Adds an order to a list, and the name of its filter, which the database does not see.
 *
 * @param column has the names; left out for versions, whose numbers have the order of their age.
 * @throws FIELD_INVALID
 */
export function narrowList(
  { name, where }: Narrowing,
  { filter, orderBy }: Pick<ListFields, "filter" | "orderBy">,
  column?: string,
): Narrowing {
  const { isByName, isReversed } = readOrder(orderBy);
  const orderedBy = isByName ? column : undefined;
  return {
    name: JSON.stringify([name, filter.trim(), orderedBy ?? "", isReversed]),
    where,
    isReversed,
    ...(orderedBy !== undefined && { orderedBy }),
  };
}

/** Longer orders are refused unread. */
const maxOrderCharacters = 100;

/** Reads the order of a list: by name, or by time. @throws FIELD_INVALID for an order by anything else */
function readOrder(orderBy: string): { readonly isByName: boolean; readonly isReversed: boolean } {
  // Words, and no expression over the whole text: with several runs of white space, that takes quadratic time.
  const words =
    orderBy.length > maxOrderCharacters ? [orderBy] : orderBy.split(/\s+/).filter((word) => word !== "");
  const [field = "create_time", direction = "asc", ...more] = words;
  const isKnown = ["name", "create_time", "createTime"].includes(field);
  if (isKnown && (direction === "asc" || direction === "desc") && more.length === 0)
    return { isByName: field === "name", isReversed: direction === "desc" };
  throw refuseField("orderBy", 'must be "name" or "create_time", each with " desc" or without');
}

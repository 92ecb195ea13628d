/** Dependencies and list helpers that all groups of calls share. */
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

export type GoogleDeps = ReturnType<KeyDomain["open"]> & { readonly rings: RingStore };

/** The caller and its abort signal. Google's interface has no idempotency keys. */
export function readCaller(context: HandlerContext) {
  return { ...readOwnCaller(context), idempotentCall: undefined };
}

/**
 * Limits a call to the caller's own records. Two users may have the same names, so a list of both would be
 * ambiguous.
 */
export function readOwner(context: HandlerContext): Principal & { readonly owner: string } {
  const principal = readPrincipal(context);
  return { ...principal, owner: principal.userId };
}

/**
 * Finds one of the caller's key rings.
 *
 * @throws KEY_RING_NOT_FOUND
 */
export async function requireRing({ rings }: GoogleDeps, owner: string, name: string): Promise<RingRecord> {
  const ring = await rings.find(owner, name);
  if (ring === undefined) throw refuse(keyRingNotFound, `key ring ${name} does not exist`, { name });
  return ring;
}

/** A list request below a parent, as Google's clients send it. */
export interface ListFields extends PageFields {
  readonly filter: string;
  readonly orderBy: string;
}

/** The rows of a list: their names start with a prefix. */
interface NamedRows<Row> {
  /** The column that contains the name. */
  readonly column: string;
  readonly prefix: string;
  /** Fields that filters may use. */
  readonly fields: FilterFields<Row>;
}

/**
 * Parses a list request into a selection of rows.
 *
 * @throws FIELD_INVALID for an invalid filter or order
 */
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
 * Adds the order to a list, and the filter to the list's name; the database does not see the filter.
 *
 * @param column the column with the names; omitted for versions, whose numbers are in order of age
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

/** Longer orders are rejected unparsed. */
const maxOrderCharacters = 100;

/**
 * Parses the order of a list: by name or by time.
 *
 * @throws FIELD_INVALID for any other order
 */
function readOrder(orderBy: string): { readonly isByName: boolean; readonly isReversed: boolean } {
  // Split into words instead of one expression, which would take quadratic time on long runs of white space.
  const words =
    orderBy.length > maxOrderCharacters ? [orderBy] : orderBy.split(/\s+/).filter((word) => word !== "");
  const [field = "create_time", direction = "asc", ...more] = words;
  const isKnown = ["name", "create_time", "createTime"].includes(field);
  if (isKnown && (direction === "asc" || direction === "desc") && more.length === 0)
    return { isByName: field === "name", isReversed: direction === "desc" };
  throw refuseField("orderBy", 'must be "name" or "create_time", optionally followed by " desc"');
}

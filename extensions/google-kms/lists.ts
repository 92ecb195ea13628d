/** Reads the lists that Google clients request: their pages, filters and orders. */
import { sql } from "kysely";
import { refuseField } from "../../src/errors.ts";
import type { Principal } from "../../src/records/ownership.ts";
import { maxPageSize, type PageRequest, writeToken } from "../../src/records/pages.ts";
import type { Found, Narrowing } from "../../src/records/record-table.ts";
import { type ListedTable, type PageFields, readPage as readOwnPage } from "../../src/services/fields.ts";
import { compileFilter, type FilterFields } from "./filter.ts";
import { maxIdCharacters } from "./resource-names.ts";

/** Default rows per page, as Google documents it for lists of keys. */
const defaultPageSize = 100;

/**
 * Parses a page request. A size above the maximum is reduced to the maximum (google.aip.dev/158).
 *
 * @param list identifies the list by parent and filters: a token is valid for one list only
 * @throws FIELD_INVALID
 */
export function readPage({ pageSize, pageToken }: PageFields, list: string): PageRequest {
  if (pageSize < 0)
    throw refuseField("pageSize", `is ${pageSize}; it must be 0 (${defaultPageSize} rows) or more`);
  const size = pageSize === 0 ? defaultPageSize : Math.min(pageSize, maxPageSize);
  return readOwnPage({ pageSize: size, pageToken }, list);
}

/** A list request, as Google's clients send it. */
interface ListFields extends PageFields {
  readonly filter: string;
  readonly orderBy: string;
}

/** What a list contains, and how it shows that. */
interface GoogleList<T, Message> extends ListedRows {
  /** Fields that filters may use. */
  readonly fields: FilterFields<T>;
  readonly pack: (record: T) => Message;
  /**
   * Returns a record's name: all that a list shows of a damaged one, because the rest may belong to another
   * user. Google's messages cannot mark it as damaged, but their clients accept a message without the other
   * fields, and every call about the record fails with DATA_LOSS. A list without the record would claim that it
   * does not exist.
   */
  readonly nameOf: (record: T) => string;
}

interface ListedRows {
  /** Selects the rows, and identifies them in page tokens. */
  readonly rows: Pick<Narrowing, "name" | "where">;
  /** The column with the names; omitted for versions, whose numbers are in order of age. */
  readonly column?: string;
}

/** Selects the rows whose names are a prefix and an ID. Names in kms may also have dots, more slashes and longer ends. */
export function rowsBelow(column: string, prefix: string): ListedRows {
  const name = sql.ref(column);
  const id = sql`substr(${name}, ${prefix.length + 1})`;
  const isId = sql`length(${id}) <= ${maxIdCharacters} and ${id} not like '%/%' and ${id} not like '%.%'`;
  const where = sql<boolean>`substr(${name}, 1, ${prefix.length}) = ${prefix} and ${isId}`;
  return { rows: { name: JSON.stringify([prefix]), where }, column };
}

/**
 * Parses a list request.
 *
 * @returns a function that reads the page and the size of the list
 * @throws FIELD_INVALID
 */
export function prepareList<T, Message>(
  table: ListedTable<Query, Found<T>>,
  { filter, orderBy, ...request }: ListFields,
  principal: Principal,
  { rows: { name, where }, column, fields, pack, nameOf }: GoogleList<T, Message>,
) {
  const { isByName, isReversed } = readOrder(orderBy);
  const orderedBy = isByName ? column : undefined;
  const narrowing = {
    name: JSON.stringify([name, filter.trim(), orderedBy ?? "", isReversed]),
    where,
    isReversed,
    ...(orderedBy !== undefined && { orderedBy }),
  };
  const accepts = compileFilter(filter, fields);
  return async () => {
    const { rows, ...page } = await readRows(table, request, { principal, narrowing }, accepts);
    const records = rows.map(({ record, isIntact }) => (isIntact ? pack(record) : { name: nameOf(record) }));
    return { ...page, records };
  };
}

interface Query {
  readonly principal: Principal;
  readonly narrowing: Narrowing;
}

/**
 * Reads a page.
 *
 * @param accepts the filter, which the database does not see. A call reads a limited number of rows, so a page
 *   can be short or empty although more rows follow, as its token shows; the size of the list is then 0. A
 *   damaged record is omitted: returning it would reveal its fields.
 */
async function readRows<T>(
  table: ListedTable<Query, Found<T>>,
  fields: PageFields,
  query: Query,
  accepts: ((record: T) => boolean) | undefined,
) {
  const list = table.nameList(query);
  const request = readPage(fields, list);
  if (accepts === undefined)
    return { ...(await table.list(request, query)), totalSize: await table.count(query) };
  const { rows: read, nextPageToken } = await table.list({ ...request, limit: maxPageSize }, query);
  const accepted = read.filter(({ record, isIntact }) => isIntact && accepts(record));
  const rows = accepted.slice(0, request.limit);
  const last = accepted.length > rows.length ? rows.at(-1) : undefined;
  return {
    rows,
    nextPageToken: last === undefined ? nextPageToken : writeToken(Number(last.row.position), list),
    totalSize: 0,
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

/** Reads the page that a Google client requests. */
import { refuseField } from "../../src/errors.ts";
import { maxPageSize, type PageRequest, writeToken } from "../../src/records/pages.ts";
import type { Found } from "../../src/records/record-table.ts";
import { type ListedTable, type PageFields, readPage as readOwnPage } from "../../src/services/fields.ts";

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

/**
 * Returns a page and the size of the list.
 *
 * @param accepts the filter, which the database does not see. A call reads a limited number of rows, so a
 *   page can be short or empty although more rows follow, as its token shows; the size of the list is then 0.
 *   A damaged record is omitted: returning it would reveal its fields.
 * @throws FIELD_INVALID
 */
export async function listPage<Query, T, Row extends Found<T>>(
  table: ListedTable<Query, Row>,
  fields: PageFields,
  query: Query,
  accepts: ((record: Row["record"]) => boolean) | undefined,
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

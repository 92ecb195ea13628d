/** Reads the page of a list that a request of Google's clients asks for. */
import { refuseField } from "../../src/errors.ts";
import { maxPageSize, type PageRequest, writeToken } from "../../src/records/pages.ts";
import type { Found } from "../../src/records/record-table.ts";
import { type ListedTable, type PageFields, readPage as readOwnPage } from "../../src/services/fields.ts";

/** Rows of a page if the request does not say, as Google documents it for lists of keys. */
const defaultPageSize = 100;

/**
 * Reads a page. A size above the maximum means the maximum (google.aip.dev/158).
 *
 * @param list names the list with its parent and its filters: a token is valid for one list only.
 * @throws FIELD_INVALID
 */
export function readPage({ pageSize, pageToken }: PageFields, list: string): PageRequest {
  if (pageSize < 0)
    throw refuseField("pageSize", `is ${pageSize}; it must be 0 (${defaultPageSize} rows) or more`);
  const size = pageSize === 0 ? defaultPageSize : Math.min(pageSize, maxPageSize);
  return readOwnPage({ pageSize: size, pageToken }, list);
}

/**
 * Lists a page, with the size of the list.
 *
 * @param accepts the filter, which the database does not see: it looks at so many rows at a time that the page may be
 *   short or empty although others follow, which its token says, and the size of the list is 0. A damaged record is left
 *   out: what it has would answer the question.
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

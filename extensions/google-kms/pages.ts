/** Reads the page of a list that a request of Google's clients asks for. */
import { refuseField } from "../../src/errors.ts";
import { maxPageSize, type PageRequest } from "../../src/records/pages.ts";
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

/** Lists a page, with the size of the list: 0 with a filter that the database does not see. @throws FIELD_INVALID */
export async function listPage<Query, Row>(
  table: ListedTable<Query, Row>,
  fields: PageFields,
  query: Query & { readonly accepts?: unknown },
) {
  const page = await table.list(readPage(fields, table.nameList(query)), query);
  return { ...page, totalSize: query.accepts === undefined ? await table.count(query) : 0 };
}

/** List pagination. A page token identifies the row before the next page, so new rows do not shift it. */
import { hash } from "node:crypto";

/** Default and maximum number of rows per page. */
export const maxPageSize = 1000;

/** Maximum rows to count for the size of a filtered list; a longer list has at least as many. */
export const maxCounted = 10_000;

export interface PageRequest {
  /** Maximum rows on the page. */
  readonly limit: number;
  /** Only rows after this position; 0 for the first page. */
  readonly after: number;
}

export interface Page<Row> {
  readonly rows: readonly Row[];
  /** Token for the next page; empty on the last page. */
  readonly nextPageToken: string;
}

/**
 * Reads a caller's page request.
 *
 * @param list the list with its filters: a token is valid for one list only
 * @returns undefined if the token is not valid for this list
 */
export function readPageRequest(pageSize: number, pageToken: string, list: string): PageRequest | undefined {
  const limit = pageSize === 0 ? maxPageSize : pageSize;
  if (pageToken === "") return { limit, after: 0 };
  const after = Number(/^([1-9]\d{0,15})\./.exec(Buffer.from(pageToken, "base64url").toString())?.[1]);
  return pageToken === writeToken(after, list) ? { limit, after } : undefined;
}

/**
 * Maximum size of a page's rows in JSON, in bytes. Base64 makes bytes fields a third larger. Many clients
 * reject messages above 4 MiB; the difference covers what row estimates leave out.
 */
export const maxPageBytes = 3 * 1024 * 1024;

/** Bytes around a JSON value, without its name: `"":,` and the quotes of a string. */
const aroundBytes = 6;
/** Approximate maximum size of a number, a boolean or a time, in bytes. */
const scalarBytes = 30;

/** Estimates the size of a row in JSON. Assumes that the message has the row's names and values. */
export function sizeInJson(row: unknown): number {
  if (typeof row !== "object" || row === null) return sizeOfValue(row);
  let bytes = 0;
  for (const [name, value] of Object.entries(row)) bytes += name.length + aroundBytes + sizeOfValue(value);
  return bytes;
}

function sizeOfValue(value: unknown): number {
  if (value instanceof Uint8Array) return Math.ceil(value.length / 3) * 4;
  if (typeof value === "string") return Buffer.byteLength(JSON.stringify(value));
  return scalarBytes;
}

/**
 * Cuts a page from rows that were read with one extra row. The page ends early if it would be too large.
 *
 * @param positionOf returns a row's position, which orders the list
 * @param bytesOf estimates the size of a row in JSON; needed if the message is smaller than the row
 */
export function cutPage<Row>(
  rows: readonly Row[],
  { limit }: PageRequest,
  list: string,
  positionOf: (row: Row) => number,
  bytesOf: (row: Row) => number = sizeInJson,
): Page<Row> {
  let bytes = 0;
  const tooLarge = rows.findIndex((row, i) => {
    bytes += bytesOf(row);
    return i > 0 && bytes > maxPageBytes;
  });
  const page = rows.slice(0, tooLarge < 0 ? limit : Math.min(limit, tooLarge));
  const last = page.at(-1);
  const isLast = page.length === rows.length || last === undefined;
  return { rows: page, nextPageToken: isLast ? "" : writeToken(positionOf(last), list) };
}

/** Creates the token for the page after a position. */
export function writeToken(after: number, list: string): string {
  return Buffer.from(`${after}.${hash("sha256", list, "hex").slice(0, 16)}`).toString("base64url");
}

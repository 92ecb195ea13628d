/** Pages of lists. A page token says after which row the next page begins, so rows that come meanwhile move nothing. */
import { hash } from "node:crypto";

/** Rows of a page, if the caller names no number; also the most that he may name. */
export const maxPageSize = 1000;

/** What to read for a page. */
export interface PageRequest {
  /** Rows to give. */
  readonly limit: number;
  /** Only rows after this position; 0 for the first page. */
  readonly after: number;
}

/** A page of rows. */
export interface Page<Row> {
  readonly rows: readonly Row[];
  /** Begins the next page; empty on the last one. */
  readonly nextPageToken: string;
}

/**
 * Reads what a caller asks for.
 *
 * @param list names the list with its filters: a token of one list is none of another.
 * @returns undefined if the token is not one of this list.
 */
export function readPageRequest(pageSize: number, pageToken: string, list: string): PageRequest | undefined {
  const limit = pageSize === 0 ? maxPageSize : pageSize;
  if (pageToken === "") return { limit, after: 0 };
  const after = Number(/^([1-9]\d{0,15})\./.exec(Buffer.from(pageToken, "base64url").toString())?.[1]);
  return pageToken === writeToken(after, list) ? { limit, after } : undefined;
}

/**
 * Bytes of a page's rows at most, in JSON, where bytes are base64 and a third larger. Many clients take no message above
 * 4 MiB; the rest is for what the estimate of a row leaves out.
 */
export const maxPageBytes = 3 * 1024 * 1024;

/** Bytes around a value in JSON beside its name: `"":,` and the quotes of a string. */
const aroundBytes = 6;
/** Bytes of a number, a truth value or a time, at most about. */
const scalarBytes = 30;

/** Tells how large a row is in JSON, about. Its names and values are taken for those of the message. */
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
 * Cuts a page out of rows that were read with one more than the limit. It ends early where it would be too large.
 *
 * @param positionOf tells the position of a row, by which the list is ordered.
 * @param bytesOf tells how large a row is in JSON, about; for rows of which a message holds less than the row.
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

function writeToken(after: number, list: string): string {
  return Buffer.from(`${after}.${hash("sha256", list, "hex").slice(0, 16)}`).toString("base64url");
}

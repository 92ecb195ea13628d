import { describe, expect, it } from "vitest";
import { cutPage, type Page, readPageRequest } from "../../src/records/pages.ts";

const list = "things of ada";
const mebibyte = 1024 * 1024;

describe("readPageRequest", () => {
  it("starts at the first row without a token, and returns 1000 rows if the caller names no number", () => {
    expect(readPageRequest(10, "", list)).toEqual({ limit: 10, after: 0 });
    expect(readPageRequest(0, "", list)).toEqual({ limit: 1000, after: 0 });
  });

  it("continues after the last row of the token's page, with any page size, but only in the same list", () => {
    expect(readPageRequest(3, token, list)).toEqual({ limit: 3, after: 3 });
    expect(readPageRequest(7, token, list)).toEqual({ limit: 7, after: 3 });
    expect(readPageRequest(3, token, "things of grace")).toBeUndefined();
  });

  const token = readPage({ rows: 5, pageSize: 3 }).nextPageToken;
  const [position, listHash] = Buffer.from(token, "base64url").toString().split(".");
  it.each([
    ["text", "second page"],
    ["a number", "3"],
    ["an encoded number", encode("3")],
    ["an encoded number with a dot", encode("3.")],
    ["position 0", encode(`0.${listHash}`)],
    ["a negative position", encode(`-1.${listHash}`)],
    ["a fraction", encode(`1.5.${listHash}`)],
    ["a position with a leading zero", encode(`0${position}.${listHash}`)],
    ["a position of 17 digits", encode(`12345678901234567.${listHash}`)],
    ["a position in a different notation", encode(`3e0.${listHash}`)],
    ["a token with trailing characters", `${token}AA`],
    ["a token with a trailing space", `${token} `],
    ["a truncated token", token.slice(0, -1)],
    ["a token in a different alphabet with padding", `${token}=`],
    ["a token with another list's hash", encode(`${position}.${"0".repeat(16)}`)],
  ])("rejects a forged token: %s", (_what, madeUp) => {
    expect(token).not.toBe(madeUp);
    expect(readPageRequest(3, madeUp, list)).toBeUndefined();
  });
});

describe("pages of a list", () => {
  it.each([
    { rows: 0, pageSize: 3, sizes: [0] },
    { rows: 1, pageSize: 3, sizes: [1] },
    { rows: 3, pageSize: 3, sizes: [3] },
    { rows: 4, pageSize: 3, sizes: [3, 1] },
    { rows: 6, pageSize: 3, sizes: [3, 3] },
    { rows: 7, pageSize: 3, sizes: [3, 3, 1] },
    { rows: 3, pageSize: 1, sizes: [1, 1, 1] },
    { rows: 2000, pageSize: 0, sizes: [1000, 1000] },
  ])("of $rows rows by $pageSize have $sizes rows, each row once and in order", (row) => {
    const pages = readAllPages(row);
    expect(pages.map((page) => page.rows.length)).toEqual(row.sizes);
    expect(pages.flatMap((page) => page.rows)).toEqual(positions(row.rows));
  });

  it("do not shift if a row before them is removed", () => {
    const { nextPageToken } = readPage({ rows: 6, pageSize: 3 });
    const without = positions(6).filter((row) => row !== 2);
    expect(readPage({ rows: without, pageSize: 3, pageToken: nextPageToken }).rows).toEqual([4, 5, 6]);
  });
});

describe("cutPage", () => {
  it.each<[what: string, bytesOf: (row: number) => number, pageSize: number, pages: number[][]]>([
    ["ends a page before it exceeds 3 MiB", () => mebibyte, 10, [[1, 2, 3], [4, 5, 6], [7]]],
    ["accepts rows of exactly 3 MiB", (row) => (row === 1 ? 3 * mebibyte - 6 : 1), 10, [positions(7)]],
    ["ends one byte later", (row) => (row === 1 ? 3 * mebibyte - 5 : 1), 10, [positions(6), [7]]],
    ["returns a larger row alone", (row) => (row === 2 ? 4 * mebibyte : 1), 10, [[1], [2], [3, 4, 5, 6, 7]]],
    ["respects the row limit", () => mebibyte, 2, [[1, 2], [3, 4], [5, 6], [7]]],
  ])("%s, and continues with the row that did not fit", (_what, bytesOf, pageSize, expected) => {
    expect(readAllPages({ rows: 7, pageSize, bytesOf }).map((page) => page.rows)).toEqual(expected);
  });
});

/** A list whose rows are their own positions, and a request for a page. */
interface Reading {
  /** The rows, or their number. */
  readonly rows: number | readonly number[];
  readonly pageSize: number;
  readonly pageToken?: string;
  readonly bytesOf?: (row: number) => number;
}

/** Reads one page as the services' lists do: with one extra row. */
function readPage({ rows, pageSize, pageToken = "", bytesOf }: Reading): Page<number> {
  const request = readPageRequest(pageSize, pageToken, list);
  if (request === undefined) throw new Error(`${pageToken} is not a token of the list`);
  const all = typeof rows === "number" ? positions(rows) : rows;
  const found = all.filter((row) => row > request.after).slice(0, request.limit + 1);
  return cutPage(found, request, list, (row) => row, bytesOf);
}

function readAllPages(reading: Reading): Page<number>[] {
  const pages = [readPage(reading)];
  for (let token = pages[0]?.nextPageToken; token; token = pages.at(-1)?.nextPageToken)
    pages.push(readPage({ ...reading, pageToken: token }));
  return pages;
}

function positions(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i + 1);
}

function encode(text: string): string {
  return Buffer.from(text).toString("base64url");
}

import { describe, expect, it } from "vitest";
import { cutPage, maxPageSize, type Page, readPageRequest } from "../../src/records/pages.ts";

const list = "things of ada";
const mebibyte = 1024 * 1024;

describe("readPageRequest", () => {
  it("starts at the first row without a token", () => {
    expect(readPageRequest(10, "", list)).toEqual({ limit: 10, after: 0 });
  });

  it("returns 1000 rows if the caller does not specify a number", () => {
    expect(maxPageSize).toBe(1000);
    expect(readPageRequest(0, "", list)).toEqual({ limit: 1000, after: 0 });
  });

  it("continues after the last row of the token's page", () => {
    const { nextPageToken } = readPage({ rows: 5, pageSize: 3 });
    expect(readPageRequest(3, nextPageToken, list)).toEqual({ limit: 3, after: 3 });
  });

  it("accepts a token with a different page size", () => {
    const { nextPageToken } = readPage({ rows: 5, pageSize: 3 });
    expect(readPageRequest(7, nextPageToken, list)).toEqual({ limit: 7, after: 3 });
  });

  it("rejects a token of a different list", () => {
    const { nextPageToken } = readPage({ rows: 5, pageSize: 3 });
    expect(readPageRequest(3, nextPageToken, "things of grace")).toBeUndefined();
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
  ])(
    "of $rows rows by $pageSize have $sizes rows, each row once and in order",
    ({ rows, pageSize, sizes }) => {
      const pages = readAllPages({ rows, pageSize });
      expect(pages.map((page) => page.rows.length)).toEqual(sizes);
      expect(pages.flatMap((page) => page.rows)).toEqual(positions(rows));
    },
  );

  it("do not shift if a row before them is removed", () => {
    const { nextPageToken } = readPage({ rows: 6, pageSize: 3 });
    const without = positions(6).filter((row) => row !== 2);
    expect(readPage({ rows: without, pageSize: 3, pageToken: nextPageToken }).rows).toEqual([4, 5, 6]);
  });
});

describe("cutPage", () => {
  it("ends a page before it exceeds 3 MiB, and continues with the row that did not fit", () => {
    const bytesOf = () => mebibyte;
    const pages = readAllPages({ rows: 7, pageSize: 10, bytesOf });
    expect(pages.map((page) => page.rows)).toEqual([[1, 2, 3], [4, 5, 6], [7]]);
  });

  it("accepts rows of exactly 3 MiB together", () => {
    const bytesOf = (row: number) => (row === 3 ? 1 : row === 1 ? 3 * mebibyte - 1 : 0);
    expect(readPage({ rows: 3, pageSize: 10, bytesOf })).toEqual({ rows: [1, 2, 3], nextPageToken: "" });
  });

  it("ends the page one byte later", () => {
    const bytesOf = (row: number) => (row === 3 ? 2 : row === 1 ? 3 * mebibyte - 1 : 0);
    expect(readPage({ rows: 3, pageSize: 10, bytesOf }).rows).toEqual([1, 2]);
  });

  it("returns a row larger than a page by itself, so that no reader gets stuck before it", () => {
    const bytesOf = (row: number) => (row === 2 ? 4 * mebibyte : 1);
    const pages = readAllPages({ rows: 3, pageSize: 10, bytesOf });
    expect(pages.map((page) => page.rows)).toEqual([[1], [2], [3]]);
  });

  it("respects the row limit if it is reached first", () => {
    const bytesOf = () => mebibyte;
    expect(readPage({ rows: 7, pageSize: 2, bytesOf }).rows).toEqual([1, 2]);
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

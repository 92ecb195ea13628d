import { describe, expect, it } from "vitest";
import { cutPage, maxPageSize, type Page, readPageRequest } from "../../src/records/pages.ts";

const list = "things of ada";
const mebibyte = 1024 * 1024;

describe("readPageRequest", () => {
  it("begins at the first row, without a token", () => {
    expect(readPageRequest(10, "", list)).toEqual({ limit: 10, after: 0 });
  });

  it("gives 1000 rows when the caller names no number", () => {
    expect(maxPageSize).toBe(1000);
    expect(readPageRequest(0, "", list)).toEqual({ limit: 1000, after: 0 });
  });

  it("goes on after the last row of the page that its token came with", () => {
    const { nextPageToken } = readPage({ rows: 5, pageSize: 3 });
    expect(readPageRequest(3, nextPageToken, list)).toEqual({ limit: 3, after: 3 });
  });

  it("takes a token with another page size", () => {
    const { nextPageToken } = readPage({ rows: 5, pageSize: 3 });
    expect(readPageRequest(7, nextPageToken, list)).toEqual({ limit: 7, after: 3 });
  });

  it("refuses a token of another list", () => {
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
    ["one of position 0", encode(`0.${listHash}`)],
    ["one of a position below 0", encode(`-1.${listHash}`)],
    ["one of a fraction", encode(`1.5.${listHash}`)],
    ["one with a zero before its position", encode(`0${position}.${listHash}`)],
    ["one with a position of 17 digits", encode(`12345678901234567.${listHash}`)],
    ["one with a position in another notation", encode(`3e0.${listHash}`)],
    ["one with something behind it", `${token}AA`],
    ["one with a space behind it", `${token} `],
    ["one that is cut short", token.slice(0, -1)],
    ["one in another alphabet with padding", `${token}=`],
    ["one with another list's hash", encode(`${position}.${"0".repeat(16)}`)],
  ])("refuses a token that is made up: %s", (_what, madeUp) => {
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

  it("do not move when a row before them is removed", () => {
    const { nextPageToken } = readPage({ rows: 6, pageSize: 3 });
    const without = positions(6).filter((row) => row !== 2);
    expect(readPage({ rows: without, pageSize: 3, pageToken: nextPageToken }).rows).toEqual([4, 5, 6]);
  });
});

describe("cutPage", () => {
  it("ends a page before it is larger than 3 MiB, and goes on with the row that did not fit", () => {
    const bytesOf = () => mebibyte;
    const pages = readAllPages({ rows: 7, pageSize: 10, bytesOf });
    expect(pages.map((page) => page.rows)).toEqual([[1, 2, 3], [4, 5, 6], [7]]);
  });

  it("takes rows of exactly 3 MiB together", () => {
    const bytesOf = (row: number) => (row === 3 ? 1 : row === 1 ? 3 * mebibyte - 1 : 0);
    expect(readPage({ rows: 3, pageSize: 10, bytesOf })).toEqual({ rows: [1, 2, 3], nextPageToken: "" });
  });

  it("ends the page one byte later", () => {
    const bytesOf = (row: number) => (row === 3 ? 2 : row === 1 ? 3 * mebibyte - 1 : 0);
    expect(readPage({ rows: 3, pageSize: 10, bytesOf }).rows).toEqual([1, 2]);
  });

  it("gives a row alone that is larger than a page may be, so that nobody is stuck before it", () => {
    const bytesOf = (row: number) => (row === 2 ? 4 * mebibyte : 1);
    const pages = readAllPages({ rows: 3, pageSize: 10, bytesOf });
    expect(pages.map((page) => page.rows)).toEqual([[1], [2], [3]]);
  });

  it("holds to the number of rows where that is less", () => {
    const bytesOf = () => mebibyte;
    expect(readPage({ rows: 7, pageSize: 2, bytesOf }).rows).toEqual([1, 2]);
  });
});

/** A list of rows that are their own positions, and what is asked of it. */
interface Reading {
  /** The rows, or how many there are. */
  readonly rows: number | readonly number[];
  readonly pageSize: number;
  readonly pageToken?: string;
  readonly bytesOf?: (row: number) => number;
}

/** Reads one page as the lists of the services do: with one row more than the limit. */
function readPage({ rows, pageSize, pageToken = "", bytesOf }: Reading): Page<number> {
  const request = readPageRequest(pageSize, pageToken, list);
  if (request === undefined) throw new Error(`${pageToken} is no token of the list`);
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

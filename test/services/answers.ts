/** Helpers for responses, whichever service sends them; they depend on no server. */
import { errorOf } from "../transcoding/client.ts";

/** A REST response, read to its end. */
export interface RestAnswer {
  readonly status: number;
  readonly text: string;
  readonly json: Record<string, unknown>;
}

/** Calls the server's REST interface: `GET /api/nft/list`. */
export async function callRest(
  url: string,
  line: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<RestAnswer> {
  const [method = "", target = ""] = line.split(" ");
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  const type = body === undefined ? {} : { "content-type": "application/json" };
  const response = await fetch(url + target, { method, headers: { ...type, ...headers }, ...content });
  const text = await response.text();
  return { status: response.status, text, json: JSON.parse(text) };
}

/** Returns how a REST call was refused, as programs see it. */
export function restRefusal({ status, text }: RestAnswer) {
  return { status, ...errorOf(text) };
}

/** Asserts that a response contains a value. */
export function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the response lacks a required value");
  return value;
}

/** Reads a list to its end in pages of one size. */
export async function readPages<
  Page extends { readonly nextPageToken: string; readonly totalSize: number },
  Row,
>(read: (pageToken: string) => Promise<Page>, rowsOf: (page: Page) => readonly Row[]) {
  const pages: Row[][] = [];
  const totals: number[] = [];
  let pageToken = "";
  do {
    const page = await read(pageToken);
    pages.push([...rowsOf(page)]);
    totals.push(page.totalSize);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return { rows: pages.flat(), sizes: pages.map(({ length }) => length), totals: [...new Set(totals)] };
}

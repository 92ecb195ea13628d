/** What tests do with answers, whichever service gives them; it needs nothing of the servers. */
import { errorOf } from "../transcoding/client.ts";

/** An answer of the REST side, read to its end. */
export interface RestAnswer {
  readonly status: number;
  readonly text: string;
  readonly json: Record<string, unknown>;
}

/** Calls the REST side of the server at a URL: `GET /api/nft/list`. */
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

/** How a REST call was refused: what a program can act on. */
export function restRefusal({ status, text }: RestAnswer) {
  return { status, ...errorOf(text) };
}

/** What an answer must have. */
export function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the answer lacks something");
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

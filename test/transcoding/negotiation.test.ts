import { describe, expect, it } from "vitest";
import { refusalOf, send } from "./client.ts";
import { serveLibrary } from "./library.ts";

const notAcceptable = { status: 406, code: "INVALID_ARGUMENT", reason: "NOT_ACCEPTABLE", fields: [] };
const ndjson = "application/x-ndjson";
const array = "application/json";
const events = "text/event-stream";

describe("a unary call is answered with JSON", () => {
  it.each([
    undefined,
    "",
    "*/*",
    "application/*",
    "APPLICATION/JSON",
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "text/html ,\tapplication/json;q=0.001",
    "application/*;q=0, application/json",
    ",application/json,,",
  ])("to accept: %s", async (accept) => {
    const headers = accept === undefined ? {} : { accept };
    const answer = await send(serveLibrary({ getBook: () => ({}) }), "GET /v1/books/a", { headers });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("application/json");
  });

  it.each([
    "text/*",
    "application/x-ndjson",
    "application/json;q=0.000, text/html",
    "application/json;Q=0",
    "*/*, application/json;q=0",
    "application/*, application/json;q=0",
  ])("and refused before anything is done for accept: %s", async (accept) => {
    const answer = await send(serveLibrary({}), "GET /v1/books/a", { headers: { accept } });
    expect(refusalOf(answer)).toEqual(notAcceptable);
    expect(answer.headers.get("content-type")).toBe("application/json");
  });
});

describe("the stream format follows accept", () => {
  const transcoder = serveLibrary({
    async *watchBooks() {
      yield { title: "a" };
    },
  });
  const watch = (accept: string | undefined) =>
    send(transcoder, "GET /v1/shelves/1/books:watch", { headers: accept === undefined ? {} : { accept } });

  it.each<[accept: string | undefined, type: string]>([
    [undefined, ndjson],
    ["*/*", ndjson],
    ["application/ndjson", "application/ndjson"],
    ["application/json, text/plain, */*;q=0.1", array],
    ["TEXT/EVENT-STREAM", events],
    ["text/*", events],
    ["text/event-stream;q=0.1, application/json;q=0.2", array],
    ["application/json;q=0.5, application/x-ndjson;q=0.6, text/event-stream;q=0.4", ndjson],
    ["*/*;q=0.5, text/event-stream", events],
    ["application/x-ndjson;q=0, application/json", array],
  ])("%s: %s", async (accept, type) => {
    const { status, headers } = await watch(accept);
    expect([status, headers.get("content-type"), headers.get("vary")]).toEqual([200, type, "accept"]);
  });

  it.each(["text/html", "*/*;q=0"])("%s: refused", async (accept) => {
    expect(refusalOf(await watch(accept))).toEqual(notAcceptable);
  });
});

it.each(["image/png", "text/html"])("a raw answer ignores accept: %s", async (accept) => {
  const transcoder = serveLibrary({ getCover: () => ({ contentType: "image/png", data: Buffer.from("x") }) });
  const answer = await send(transcoder, "GET /v1/shelves/1/books/2/cover", { headers: { accept } });
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "image/png"]);
});

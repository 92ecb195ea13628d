import { describe, expect, it } from "vitest";
import { refusalOf, send } from "./client.ts";
import { serveLibrary } from "./library.ts";

const notAcceptable = { status: 406, code: "INVALID_ARGUMENT", reason: "NOT_ACCEPTABLE", fields: [] };
const ndjson = "application/x-ndjson";
const array = "application/json";
const events = "text/event-stream";

describe("a unary call is answered with JSON", () => {
  const transcoder = serveLibrary({ getBook: () => ({ title: "a" }) });
  const accepted = [
    undefined,
    "",
    "*/*",
    "application/*",
    "application/json",
    "APPLICATION/JSON",
    "application/json; charset=utf-8",
    "application/json;q=0.001",
    "text/html, application/json;q=0.1",
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "text/html;q=1, */*;q=0.1",
    "text/html ,\tapplication/json",
    "application/json;q=0.5;ext=1",
    "application/*;q=0, application/json",
    "*/*;q=0, application/json;q=0.1",
    ",application/json,,",
  ];
  for (const accept of accepted) {
    it(`to accept: ${accept ?? "(none)"}`, async () => {
      const headers = accept === undefined ? {} : { accept };
      const answer = await send(transcoder, "GET /v1/books/a", { headers });
      expect(answer.status).toBe(200);
      expect(answer.headers.get("content-type")).toBe("application/json");
    });
  }

  const refused = [
    "text/html",
    "text/*",
    "application/xml",
    "application/jsonp",
    "application/x-ndjson",
    "text/event-stream",
    "application/json;q=0",
    "application/json;q=0.000, text/html",
    "application/json;Q=0",
    "*/*;q=0",
    "*/*, application/json;q=0",
    "application/*, application/json;q=0",
    "image/png, text/html;q=0.5",
  ];
  for (const accept of refused) {
    it(`and refused for accept: ${accept}`, async () => {
      const answer = await send(transcoder, "GET /v1/books/a", { headers: { accept } });
      expect(refusalOf(answer)).toEqual(notAcceptable);
      expect(answer.headers.get("content-type")).toBe("application/json");
    });
  }

  it("and refused before anything is done", async () => {
    let calls = 0;
    const counting = serveLibrary({
      deleteBook() {
        calls += 1;
        return {};
      },
    });
    await send(counting, "DELETE /v1/shelves/1/books/2", { headers: { accept: "text/html" } });
    expect(calls).toBe(0);
  });
});

describe("the stream format follows accept", () => {
  const transcoder = serveLibrary({
    async *watchBooks() {
      yield { title: "a" };
    },
  });
  const rows: [accept: string | undefined, type: string][] = [
    [undefined, ndjson],
    ["", ndjson],
    ["*/*", ndjson],
    ["application/*", ndjson],
    ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", ndjson],
    ["application/x-ndjson", ndjson],
    ["application/ndjson", "application/ndjson"],
    ["application/jsonl", "application/jsonl"],
    ["application/json", array],
    ["application/json, text/plain, */*;q=0.1", array],
    ["text/event-stream", events],
    ["TEXT/EVENT-STREAM", events],
    ["text/*", events],
    ["text/event-stream, application/json;q=0.9", events],
    ["text/event-stream;q=0.1, application/json;q=0.2", array],
    ["application/json;q=0.5, application/x-ndjson;q=0.6, text/event-stream;q=0.4", ndjson],
    ["*/*;q=0.5, text/event-stream", events],
    ["application/*, text/event-stream;q=0.9", ndjson],
    ["application/x-ndjson;q=0, application/json", array],
  ];
  for (const [accept, type] of rows) {
    it(`${accept ?? "(none)"}: ${type}`, async () => {
      const headers = accept === undefined ? {} : { accept };
      const answer = await send(transcoder, "GET /v1/shelves/1/books:watch", { headers });
      expect(answer.status).toBe(200);
      expect(answer.headers.get("content-type")).toBe(type);
      expect(answer.headers.get("vary")).toBe("accept");
    });
  }

  for (const accept of ["text/html", "application/grpc", "*/*;q=0", "image/*"]) {
    it(`${accept}: refused`, async () => {
      const answer = await send(transcoder, "GET /v1/shelves/1/books:watch", { headers: { accept } });
      expect(refusalOf(answer)).toEqual(notAcceptable);
    });
  }
});

describe("a raw answer has the media type set by the implementation", () => {
  for (const accept of ["*/*", "image/png", "application/json", "text/html"]) {
    it(`whatever accept contains: ${accept}`, async () => {
      const transcoder = serveLibrary({
        getCover: () => ({ contentType: "image/png", data: Buffer.from("x") }),
      });
      const answer = await send(transcoder, "GET /v1/shelves/1/books/2/cover", { headers: { accept } });
      expect(answer.status).toBe(200);
      expect(answer.headers.get("content-type")).toBe("image/png");
    });
  }
});

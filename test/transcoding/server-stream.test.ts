import type { HandlerContext } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { refuse } from "../../src/errors.ts";
import { openContent } from "../../src/http/byte-ranges.ts";
import { errorOf, piecesOf, readAnswer, refusalOf, requestOf, send } from "./client.ts";
import { serveLibrary, untilAborted } from "./library.ts";
import { invalid } from "./rules.ts";

const watch = "GET /v1/shelves/1/books:watch";
const ndjson = { accept: "application/x-ndjson" };
const array = { accept: "application/json" };
const events = { accept: "text/event-stream" };

/** A stream of titles, ended by an error if given. */
function titled(titles: readonly string[], error?: Error) {
  return serveLibrary({
    async *watchBooks() {
      for (const title of titles) yield { title };
      if (error !== undefined) throw error;
    },
  });
}

/** The JSON of a book with only a title. */
function bookText(title: string): string {
  return JSON.stringify({ name: "", title, pages: 0, isbn: "0", lent: false, authors: [], labels: {} });
}

/** A stream that ends only with its reader or its caller. */
function endless(method: "watchBooks" | "readFile", start: (context: HandlerContext) => void = () => {}) {
  const { promise: ended, resolve } = Promise.withResolvers<HandlerContext>();
  async function* run(_request: unknown, context: HandlerContext) {
    start(context);
    try {
      for (;;) yield method === "watchBooks" ? { title: "a" } : { data: Buffer.from("a") };
    } finally {
      resolve(context);
    }
  }
  return { transcoder: serveLibrary({ [method]: run }), ended };
}

describe.each([
  {
    format: "JSON lines",
    headers: ndjson,
    none: "",
    two: `${bookText("a")}\n${bookText("b")}\n`,
    failed: /^(.+)\n(\{.+\})\n$/,
  },
  {
    format: "one JSON array",
    headers: array,
    none: "[]\n",
    two: `[${bookText("a")},\n${bookText("b")}]\n`,
    failed: /^\[(.+),\n(\{.+\})\]\n$/,
  },
  {
    format: "server-sent events",
    headers: events,
    none: "id: end\n\n",
    two: `data: ${bookText("a")}\n\ndata: ${bookText("b")}\n\nid: end\n\n`,
    failed: /^data: (.+)\n\nevent: error\ndata: (\{.+\})\n\n$/,
  },
])("a server stream as $format", ({ headers, none, two, failed }) => {
  it("has one part for each message", async () => {
    expect(await send(titled(["a", "b"]), watch, { headers })).toMatchObject({ status: 200, text: two });
    expect(await send(titled([]), watch, { headers })).toMatchObject({ status: 200, text: none });
  });

  it("that fails before its first message has the status of its error", async () => {
    const answer = await send(titled([], refuse("KEY_INVALID", "no")), watch, { headers });
    expect(refusalOf(answer)).toEqual(invalid("KEY_INVALID"));
    expect(answer.headers.get("content-type")).toBe("application/json");
  });

  it("that fails later ends with the error", async () => {
    const { text } = await send(titled(["a"], refuse("KEY_INVALID", "too late")), watch, { headers });
    const [, first, second = ""] = failed.exec(text) ?? [];
    expect(first).toBe(bookText("a"));
    expect(errorOf(second)).toEqual({ code: "INVALID_ARGUMENT", reason: "KEY_INVALID", fields: [] });
  });

  it("ends, and its generator with it, when its reader leaves", async () => {
    const { transcoder, ended } = endless("watchBooks");
    const pieces = piecesOf(await transcoder.handle(requestOf(watch, { headers })));
    await pieces.next();
    await pieces.return?.();
    expect((await ended).signal.aborted).toBe(true);
  });
});

describe("a server stream", () => {
  it("with an invalid request has the status of its error", async () => {
    const answer = await send(titled(["a"]), `${watch}?bogus=1`);
    expect(refusalOf(answer)).toEqual(invalid("PARAMETER_UNKNOWN", "bogus"));
  });

  it("does not run again for an EventSource that reconnects after its end", async () => {
    const again = (headers: object) =>
      send(titled(["a"]), watch, { headers: { "last-event-id": "end", ...headers } });
    expect(await again(events)).toMatchObject({ status: 204, text: "" });
    expect(await again(ndjson)).toMatchObject({ status: 200, text: `${bookText("a")}\n` });
  });

  it("escapes line breaks in texts", async () => {
    const answer = await send(titled(["a\r\nb\u2028c"]), watch, { headers: events });
    const [line = "", ...others] = answer.text.split("\n");
    expect(others).toEqual(["", "id: end", "", ""]);
    expect(JSON.parse(line.slice("data: ".length))).toMatchObject({ title: "a\r\nb\u2028c" });
  });

  it("can consist of one field of each message", async () => {
    const answer = await send(titled(["a", "b"]), "GET /v1/shelves/1/titles:watch");
    expect(answer.text).toBe('"a"\n"b"\n');
  });

  it("that fails because of the machine does not reveal why", async () => {
    const { text } = await send(titled(["a"], new Error("password=x")), watch);
    expect(errorOf(text.split("\n")[1] ?? "")).toMatchObject({ code: "INTERNAL", reason: "INTERNAL" });
    expect(text).not.toContain("password");
  });

  it("has the headers of the implementation, and its trailers at the end", async () => {
    const transcoder = serveLibrary({
      async *watchBooks(_request, { responseHeader, responseTrailer }) {
        responseHeader.set("x-header", "1");
        yield {};
        responseTrailer.set("x-trailer", "2");
      },
    });
    const response = await transcoder.handle(requestOf(watch));
    expect(response.headers.get("x-header")).toBe("1");
    expect(response.headers.get("cache-control")).toBe("no-store");
    await readAnswer(response);
    expect(response.trailers?.get("x-trailer")).toBe("2");
  });

  it("that sends nothing for a while is answered all the same", async () => {
    const caller = new AbortController();
    const transcoder = serveLibrary({
      async *watchBooks(_request, { signal }) {
        await untilAborted(signal);
        yield {};
      },
    });
    const response = await transcoder.handle(requestOf(watch, { signal: caller.signal }));
    expect(response.status).toBe(200);
    caller.abort();
    const last = await piecesOf(response).next();
    expect(errorOf(Buffer.from(last.value).toString())).toMatchObject({ code: "CANCELLED" });
  });
});

describe("a stream of raw bytes", () => {
  it("consists of the bytes of its messages, with the media type of the first", async () => {
    const transcoder = serveLibrary({
      async *readFile({ path }) {
        yield { contentType: "text/plain", data: Buffer.from(`${path}: `) };
        yield { contentType: "ignored/x", data: Buffer.from("é") };
      },
    });
    const answer = await send(transcoder, "GET /v1/files/a/b%2Fc");
    expect(answer).toMatchObject({ status: 200, text: "a/b%2Fc: é" });
    expect(answer.headers.get("content-type")).toBe("text/plain");
  });

  it("without messages is empty", async () => {
    const answer = await send(serveLibrary({ async *readFile() {} }), "GET /v1/files");
    expect(answer).toMatchObject({ status: 200, text: "" });
  });

  it("that fails before its first message has the status of its error", async () => {
    const answer = await send(serveLibrary({}), "GET /v1/files/a");
    expect(refusalOf(answer)).toMatchObject({ status: 501, code: "UNIMPLEMENTED" });
  });

  it("that fails later is cut off, because an error would look like content", async () => {
    const transcoder = serveLibrary({
      async *readFile() {
        yield { contentType: "text/plain", data: Buffer.from("a") };
        throw new Error("disk");
      },
    });
    await expect(send(transcoder, "GET /v1/files/a")).rejects.toThrow();
  });
});

describe("content that its handler announces", () => {
  const bytes = Buffer.from("0123456789");
  /** Streams the requested part of the content, two bytes at a time. */
  const transcoder = serveLibrary({
    async *readFile(_request, context) {
      const { from, to } = openContent(context, { length: 10, tag: '"t"', cacheControl: "max-age=60" });
      for (let at = from; at === from || at < to; at += 2)
        yield { contentType: "text/plain", data: bytes.subarray(at, Math.min(at + 2, to)) };
    },
  });
  const read = (headers: Record<string, string>, method = "GET") =>
    send(transcoder, `${method} /v1/files/a`, { headers });
  const part = { range: "bytes=3-7" };

  it.each([
    [
      "whole",
      {},
      "GET",
      200,
      "0123456789",
      { "content-length": "10", "cache-control": "max-age=60", etag: '"t"' },
    ],
    ["in part", part, "GET", 206, "34567", { "content-length": "5", "content-range": "bytes 3-7/10" }],
    ["as its length for HEAD", part, "HEAD", 200, "", { "content-length": "10", "accept-ranges": "bytes" }],
  ])("is sent %s", async (_what, sent, method, status, text, headers) => {
    const answer = await read(sent, method);
    expect([answer.status, answer.text]).toEqual([status, text]);
    expect(Object.fromEntries(answer.headers)).toMatchObject({ "content-type": "text/plain", ...headers });
  });

  it("is refused with 416 and its length", async () => {
    const answer = await read({ range: "bytes=10-" });
    expect(refusalOf(answer)).toMatchObject({ status: 416, reason: "RANGE_NOT_SATISFIABLE" });
    expect(answer.headers.get("content-range")).toBe("bytes */10");
  });

  it("is not sent to a caller that has it", async () => {
    const { status, text, headers } = await read({ "if-none-match": '"t"', range: "bytes=99-" });
    expect([status, text]).toEqual([304, ""]);
    expect(Object.fromEntries(headers)).toMatchObject({ etag: '"t"', "cache-control": "max-age=60" });
    expect(headers.has("content-length")).toBe(false);
  });

  it.each<[string, Record<string, string>, string]>([
    ["304", { "if-none-match": '"t"' }, "GET"],
    ["HEAD", {}, "HEAD"],
  ])("ends its generator for %s", async (_name, headers, method) => {
    const { transcoder, ended } = endless("readFile", (context) => {
      openContent(context, { length: 1e9, tag: '"t"', cacheControl: "no-cache" });
    });
    await send(transcoder, `${method} /v1/files/a`, { headers });
    await ended;
  });
});

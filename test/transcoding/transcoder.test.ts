import type { Interceptor } from "@connectrpc/connect";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { refuse } from "../../src/errors.ts";
import { jsonOf, refusalOf, send } from "./client.ts";
import { serveLibrary, untilAborted } from "./library.ts";
import { invalid } from "./rules.ts";

const watch = "GET /v1/shelves/1/books:watch";
describe("the library", () => {
  const library = serveLibrary({
    getBook: ({ name, revision }) => ({ name, pages: revision }),
    listBooks: ({ parent, pageSize }) => ({ titles: [parent], totalSize: pageSize }),
    listTitles: ({ parent }) => ({ titles: [parent, parent] }),
    createBook: ({ parent, book, bookId }) => ({
      title: book?.title ?? "",
      name: `${parent}/books/${bookId}`,
    }),
    updateBook: ({ book, allowMissing }) => ({
      name: book?.name ?? "",
      title: book?.title ?? "",
      lent: allowMissing,
    }),
    deleteBook: () => ({}),
    moveBook: ({ name, otherShelf }) => ({ name, title: otherShelf }),
    purgeBooks: () => ({}),
    putCover: ({ name, cover }) => ({ name, title: cover?.contentType ?? "" }),
  });
  const rows: [line: string, body: string | undefined, json: object][] = [
    ["GET /v1/shelves/1/books/2", undefined, { name: "shelves/1/books/2" }],
    ["GET /v1/shelves/1/books/2?revision=3", undefined, { name: "shelves/1/books/2", pages: 3 }],
    ["GET /v1/shelves/a%2Fb/books/2", undefined, { name: "shelves/a%2Fb/books/2" }],
    ["GET /v1/books/a%2Fb", undefined, { name: "a/b" }],
    ["GET /v1/shelves/1/books?pageSize=5", undefined, { titles: ["shelves/1"], totalSize: 5 }],
    ["GET /v1/shelves/1/titles", undefined, ["shelves/1", "shelves/1"]],
    ["POST /v1/shelves/1/books?bookId=2", '{"title":"a"}', { name: "shelves/1/books/2", title: "a" }],
    ["PATCH /v1/shelves/1/books/2", '{"title":"a"}', { name: "shelves/1/books/2", title: "a" }],
    ["PATCH /v1/shelves/1/books/2?allowMissing=true", '{"title":"a"}', { title: "a", lent: true }],
    [
      "PUT /v1/shelves/1/books/2",
      '{"book":{"title":"a"},"allowMissing":true}',
      { name: "shelves/1/books/2", title: "a", lent: true },
    ],
    ["DELETE /v1/shelves/1/books/2", undefined, {}],
    ["POST /v1/shelves/1/books/2:move", '{"otherShelf":"3"}', { name: "shelves/1/books/2", title: "3" }],
    ["PURGE /v1/shelves/1/books", undefined, {}],
    ["PUT /v1/shelves/1/books/2/cover", "{", { name: "shelves/1/books/2" }],
  ];
  for (const [line, body, json] of rows) {
    it(line, async () => {
      const answer = await send(library, line, body === undefined ? {} : { body });
      expect(answer.status).toBe(200);
      expect(JSON.parse(answer.text)).toMatchObject(json);
    });
  }

  const refused: [line: string, body: string | undefined, refusal: object][] = [
    ["POST /v1/shelves/1/books?title=a", "{}", invalid("PARAMETER_UNKNOWN", "title")],
    ["POST /v1/shelves/1/books", '{"book":{"title":"a"}}', { status: 400, code: "INVALID_ARGUMENT" }],
    [
      "PATCH /v1/shelves/1/books/2",
      '{"name":"shelves/1/books/3"}',
      invalid("FIELD_CONTRADICTION", "book.name"),
    ],
    ["POST /v1/shelves/1/books/2:steal", "{}", { status: 405 }],
    ["POST /v1/shelves/1/books/2", "{}", { status: 405 }],
    ["GET /testing.Library/GetBook", undefined, { status: 404 }],
    ["POST /testing.Library/CountBooks", "{}", { status: 404 }],
  ];
  for (const [line, body, refusal] of refused) {
    it(`${line} is refused`, async () => {
      const answer = await send(library, line, body === undefined ? {} : { body });
      expect(refusalOf(answer)).toMatchObject(refusal);
    });
  }
});

describe("a call", () => {
  it("that is not implemented is refused as such", async () => {
    const answer = await send(serveLibrary({}), "GET /v1/books/a");
    expect(refusalOf(answer)).toMatchObject({ status: 501, code: "UNIMPLEMENTED" });
  });

  it("can be distinguished from an RPC by its context", async () => {
    const seen: unknown[] = [];
    const transcoder = serveLibrary({
      getBook(_request, { service, method, protocolName, requestMethod, url, requestHeader }) {
        seen.push([
          service.typeName,
          method.name,
          protocolName,
          requestMethod,
          url,
          requestHeader.get("x-test"),
        ]);
        return {};
      },
    });
    await send(transcoder, "GET /v1/books/a?revision=1", { headers: { "x-test": "1" } });
    expect(seen).toEqual([["testing.Library", "GetBook", "rest", "GET", "/v1/books/a?revision=1", "1"]]);
  });

  it("answers with the headers of the implementation, and its trailers as in Connect", async () => {
    const transcoder = serveLibrary({
      getBook(_request, { responseHeader, responseTrailer }) {
        responseHeader.append("x-header", "1");
        responseHeader.append("set-cookie", "a=1");
        responseHeader.append("set-cookie", "b=2");
        responseTrailer.set("x-trailer", "3");
        return {};
      },
    });
    const { headers } = await send(transcoder, "GET /v1/books/a");
    expect(headers.get("x-header")).toBe("1");
    expect(headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    expect(headers.get("trailer-x-trailer")).toBe("3");
  });

  it("does not wait for the body if it takes none", async () => {
    const transcoder = serveLibrary({ moveBook: ({ name }) => ({ name }) });
    const answer = await send(transcoder, "POST /v1/shelves/1/books/2:move");
    expect(jsonOf(answer)).toMatchObject({ name: "shelves/1/books/2" });
  });

  it("notifies its implementation when the caller disconnects", async () => {
    const caller = new AbortController();
    const started = Promise.withResolvers<AbortSignal>();
    const transcoder = serveLibrary({
      getBook(_request, { signal }) {
        started.resolve(signal);
        return untilAborted(signal);
      },
    });
    const answer = send(transcoder, "GET /v1/books/a", { signal: caller.signal });
    const signal = await started.promise;
    caller.abort();
    await expect(answer).rejects.toThrow("the caller left");
    expect(signal.reason).toMatchObject({ code: Code.Canceled });
  });

  it("notifies its implementation when the server shuts down", async () => {
    const shutdown = new AbortController();
    const { promise: started, resolve } = Promise.withResolvers<void>();
    const transcoder = serveLibrary(
      {
        getBook(_request, { signal }) {
          resolve();
          return untilAborted(signal);
        },
      },
      { shutdownSignal: shutdown.signal },
    );
    const answer = send(transcoder, "GET /v1/books/a");
    await started;
    shutdown.abort(new ConnectError("shutting down", Code.Unavailable));
    expect(refusalOf(await answer)).toMatchObject({ status: 503, code: "UNAVAILABLE" });
  });

  it("notifies its implementation when it has ended", async () => {
    const signals: AbortSignal[] = [];
    const transcoder = serveLibrary({
      getBook(_request, { signal }) {
        signals.push(signal);
        return {};
      },
    });
    await send(transcoder, "GET /v1/books/a");
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  });
});

describe("a REST call passes through the interceptors", () => {
  it("outermost first, for unary calls and streams", async () => {
    const trace: string[] = [];
    const tracing = (name: string): Interceptor => {
      return (next) => async (request) => {
        trace.push(`${name}: ${request.service.typeName}.${request.method.name}`);
        const response = await next(request);
        trace.push(`${name}: done`);
        return response;
      };
    };
    const transcoder = serveLibrary(
      {
        getBook: () => ({}),
        async *watchBooks() {
          yield {};
        },
        importBooks: async () => ({}),
      },
      { interceptors: [tracing("one"), tracing("two")] },
    );
    for (const [line, method] of [
      ["GET /v1/books/a", "GetBook"],
      [watch, "WatchBooks"],
      ["POST /v1/books:import", "ImportBooks"],
    ] as const) {
      trace.length = 0;
      await send(transcoder, line);
      const rpc = `testing.Library.${method}`;
      expect(trace).toEqual([`one: ${rpc}`, `two: ${rpc}`, "two: done", "one: done"]);
    }
  });

  it("which see its headers, such as trace headers", async () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const seen: (string | null)[] = [];
    const transcoder = serveLibrary(
      { getBook: () => ({}) },
      {
        interceptors: [
          (next) => (request) => {
            seen.push(request.header.get("traceparent"), request.header.get("authorization"));
            return next(request);
          },
        ],
      },
    );
    await send(transcoder, "GET /v1/books/a", { headers: { traceparent, authorization: "Bearer x" } });
    expect(seen).toEqual([traceparent, "Bearer x"]);
  });

  it("which can refuse it before the implementation is called", async () => {
    let calls = 0;
    const transcoder = serveLibrary(
      {
        getBook() {
          calls += 1;
          return {};
        },
      },
      {
        interceptors: [
          () => () => {
            throw refuse("TOKEN_MISSING", "no token");
          },
        ],
      },
    );
    expect(refusalOf(await send(transcoder, "GET /v1/books/a"))).toMatchObject({
      status: 401,
      reason: "TOKEN_MISSING",
    });
    expect(refusalOf(await send(transcoder, watch))).toMatchObject({ status: 401, reason: "TOKEN_MISSING" });
    expect(calls).toBe(0);
  });

  it("which can add to its answer", async () => {
    const transcoder = serveLibrary(
      { getBook: () => ({ title: "a" }) },
      {
        interceptors: [
          (next) => async (request) => {
            const response = await next(request);
            response.header.set("x-added", "1");
            response.trailer.set("x-added-too", "2");
            return response;
          },
        ],
      },
    );
    const { headers } = await send(transcoder, "GET /v1/books/a");
    expect(headers.get("x-added")).toBe("1");
    expect(headers.get("trailer-x-added-too")).toBe("2");
  });
});

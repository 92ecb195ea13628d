import type { HandlerContext, Interceptor } from "@connectrpc/connect";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { refuse } from "../../src/errors.ts";
import { refusalOf, send } from "./client.ts";
import { serveLibrary, untilAborted } from "./library.ts";

const watch = "GET /v1/shelves/1/books:watch";
describe("a call", () => {
  it("can be distinguished from an RPC by its context", async () => {
    const contexts: HandlerContext[] = [];
    const transcoder = serveLibrary({
      getBook(_request, context) {
        contexts.push(context);
        return {};
      },
    });
    await send(transcoder, "GET /v1/books/a?revision=1", { headers: { "x-test": "1" } });
    const [{ service, method, protocolName, requestMethod, url, requestHeader, signal }] = contexts as [
      HandlerContext,
    ];
    expect([service.typeName, method.name, protocolName]).toEqual(["testing.Library", "GetBook", "rest"]);
    expect([requestMethod, url]).toEqual(["GET", "/v1/books/a?revision=1"]);
    expect(requestHeader.get("x-test")).toBe("1");
    // It has ended.
    expect(signal.aborted).toBe(true);
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

  it("which see its headers, and can add to its answer", async () => {
    const seen: (string | null)[] = [];
    const interceptor: Interceptor = (next) => async (request) => {
      seen.push(request.header.get("traceparent"), request.header.get("authorization"));
      const response = await next(request);
      response.header.set("x-added", "1");
      response.trailer.set("x-added-too", "2");
      return response;
    };
    const transcoder = serveLibrary({ getBook: () => ({}) }, { interceptors: [interceptor] });
    const parts = { headers: { traceparent: "00-0af7", authorization: "Bearer x" } };
    const { headers } = await send(transcoder, "GET /v1/books/a", parts);
    expect(seen).toEqual(["00-0af7", "Bearer x"]);
    expect([headers.get("x-added"), headers.get("trailer-x-added-too")]).toEqual(["1", "2"]);
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
});

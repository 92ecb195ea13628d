import http2 from "node:http2";
import { describe, expect, it } from "vitest";
import { StoreFailureError } from "../../src/database/store-error.ts";
import { explainFailure } from "../../src/services/explain-failure.ts";
import { failureOf } from "../support/refusal.ts";
import { connectProbe, type ProbeBehaviour, protocols, serveProbe } from "./probe.ts";
import { connectHttp2, exchangeBytes, request, requestHttp1 } from "./raw.ts";
import { collectLines } from "./serve.ts";

/** Serves with a log that the test reads. */
async function serveLogging(ask: NonNullable<ProbeBehaviour["ask"]>, level = "error") {
  const { lines, logger } = collectLines(level);
  return { lines, ...(await serveProbe({ ask }, {}, { logger })) };
}

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

describe.each(protocols)("over %s", (protocol) => {
  it("a handler sees the call's address, headers and deadline", async () => {
    let seen: unknown[] = [];
    const { url } = await serveLogging((_request, { url: target, requestHeader, timeoutMs, signal }) => {
      const leftMs = timeoutMs() ?? 0;
      const isWithin = leftMs > 0 && leftMs <= 5000;
      seen = [new URL(target).pathname, requestHeader.get("traceparent"), isWithin, signal.aborted];
      return {};
    });
    await connectProbe(protocol, url).ask({}, { headers: { traceparent }, timeoutMs: 5000 });
    expect(seen).toEqual(["/probing.Probe/Ask", traceparent, true, false]);
  });

  it("a fault is logged with the request ID that its caller gets, and reveals nothing else to the caller", async () => {
    const { url, lines } = await serveLogging(() => {
      throw new Error("the disk is on fire");
    });
    const headers = { "x-request-id": "mine-1" };
    const error = await failureOf(connectProbe(protocol, url).ask({}, { headers }));
    expect([error.rawMessage, error.metadata.get("x-request-id")]).toEqual(["internal error", "mine-1"]);
    const method = "probing.Probe/Ask";
    const err = { message: "the disk is on fire" };
    expect(lines).toMatchObject([{ method, requestId: "mine-1", reason: "INTERNAL", err }]);
  });

  it("a call that cannot reach the store is logged with the cause in words, and without a stack", async () => {
    const refused = { code: "ECONNREFUSED", syscall: "connect", address: "127.0.0.1", port: 5432 };
    const cause = new AggregateError([Object.assign(new Error("connect ECONNREFUSED"), refused)]);
    const { url, lines } = await serveLogging(() => {
      throw explainFailure(new StoreFailureError("UNAVAILABLE", cause));
    });
    await failureOf(connectProbe(protocol, url).ask({}));
    const expected = { reason: "STORE_UNAVAILABLE", cause: "nothing listens on 127.0.0.1:5432" };
    expect(lines).toMatchObject([expected]);
    expect(JSON.stringify(lines)).not.toContain("observe.test.ts");
  });
});

it("a call that is answered is logged only at debug level, with its trace", async () => {
  const { url, lines } = await serveLogging(() => ({}), "debug");
  const answer = await fetch(`${url}/probe/ask`, { method: "POST", headers: { traceparent } });
  const requestId = answer.headers.get("x-request-id");
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  expect(lines).toMatchObject([{ level: 20, method: "probing.Probe/Ask", traceId, requestId }]);
});

// refusals.test.ts tests that every refusal has a request ID.
const made = /^[0-9a-f]{12}-[0-9a-z]+$/;

describe("an answer", () => {
  it("has a new ID, or the ID of its request if there is one, even for OPTIONS", async () => {
    const { url } = await serveProbe();
    const idOf = async (given = {}): Promise<unknown> => {
      const sent = { ":method": "OPTIONS", ":path": "/probe/ask", ...given };
      return (await request(connectHttp2(url), sent)).headers["x-request-id"];
    };
    const ids = [await idOf(), await idOf()];
    for (const id of ids) expect(id).toMatch(made);
    expect(ids[0]).not.toBe(ids[1]);
    expect(await idOf({ "x-request-id": "mine:1.a_b-c" })).toBe("mine:1.a_b-c");
  });

  const unsafe = ["", "a b", "<script>", `a${"b".repeat(128)}`, "\u00e9", "a,b"];
  it.each(unsafe)("has a new ID if the ID of its request is not safe to log: %j", async (given) => {
    const headers = { "x-request-id": given };
    const { url } = await serveProbe();
    const over2 = await request(connectHttp2(url), { ":path": "/probe/nothing", ...headers });
    for (const answer of [over2, await requestHttp1(`${url}/probe/nothing`, { headers })])
      expect(answer.headers["x-request-id"]).toMatch(made);
  });

  const refused = ["/probe/look?x=1", "/probe/watch?x=1", "/probing.Probe/Look?encoding=json&message=x"];
  it.each(refused)("to a call that is refused early has the ID of its log line: %s", async (path) => {
    const { lines, logger } = collectLines();
    const { url } = await serveProbe({}, {}, { logger });
    const { headers } = await requestHttp1(`${url}${path}`);
    expect(headers["x-request-id"]).toMatch(made);
    expect(lines).toMatchObject([{ msg: "call refused", requestId: headers["x-request-id"] }]);
  });

  it("has an ID that does not enter the HPACK table of its connection", async () => {
    const { headers } = await request(connectHttp2((await serveProbe()).url), { ":path": "/probe/ask" });
    expect(Reflect.get(headers, http2.sensitiveHeaders)).toEqual(["x-request-id"]);
  });

  it.each([
    ["garbage", "garbage\r\n\r\n"],
    ["CONNECT", "CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n"],
    ["a head far beyond the limit", `GET / HTTP/1.1\r\nx-much: ${"a".repeat(10_000)}\r\n\r\n`],
  ])("to bytes that are not a request has an ID: %s", async (_what, bytes) => {
    const { port } = await serveProbe({}, { maxMetadataBytes: 1000 });
    expect(/^x-request-id: (.*)$/im.exec(await exchangeBytes(port, bytes))?.[1]).toMatch(made);
  });
});

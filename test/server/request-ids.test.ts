import http2 from "node:http2";
import { Writable } from "node:stream";
import { createServiceImplSpec, type ServiceImpl } from "@connectrpc/connect";
import { pino } from "pino";
import { describe, expect, it, onTestFinished } from "vitest";
import type { ServerLimits } from "../../src/server/limits.ts";
import { createServer } from "../../src/server/server.ts";
import { Probe } from "../gen/probing/probe_pb.ts";
import { defaultLimits } from "./default-limits.ts";
import { connectHttp2, exchangeBytes, jsonRefusalOf, request } from "./raw.ts";

/** A request that the server does not serve. */
interface Refused {
  readonly reason: string | undefined;
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

const refusals: Record<string, Refused> = {
  "a path that is not UTF-8": { reason: "TARGET_INVALID", path: "/probe/%ff" },
  "a method that a page does not take": { reason: "METHOD_NOT_ALLOWED", method: "DELETE", path: "/livez" },
  "a question for the methods of a path": { reason: undefined, method: "OPTIONS", path: "/probe/ask" },
  "an unknown parameter": { reason: "PARAMETER_UNKNOWN", path: "/probe/look?none=1" },
  "an answer in a form that does not exist": {
    reason: "NOT_ACCEPTABLE",
    path: "/probe/look",
    headers: { accept: "text/html" },
  },
};

/** Serves with a log that the test reads. */
async function serve(limits: Partial<ServerLimits> = {}, behaviour: Partial<ServiceImpl<typeof Probe>> = {}) {
  const lines: Record<string, unknown>[] = [];
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(JSON.parse(chunk.toString()) as Record<string, unknown>);
      done();
    },
  });
  const server = await createServer({
    services: [
      createServiceImplSpec<typeof Probe>(Probe, {
        look: () => ({}),
        ask: () => ({}),
        ...behaviour,
      } as ServiceImpl<typeof Probe>),
    ],
    logger: pino({ level: "error" }, sink),
    limits: { ...defaultLimits, ...limits },
    isHostAllowed: (hostname) => hostname === "127.0.0.1",
  });
  onTestFinished(() => server.destroy());
  const { port } = await server.listen(0, "127.0.0.1");
  return { lines, port, url: `http://127.0.0.1:${port}` };
}

type Send = (
  place: { port: number; url: string },
  refused: Refused,
) => Promise<{ id: string | undefined; reason: string | undefined }>;

const readReason = (body: string): string | undefined =>
  body === "" ? undefined : jsonRefusalOf(body).reason;

const overHttp1: Send = async ({ port }, { method = "GET", path = "/probe/ask", headers, body = "" }) => {
  const all = {
    host: "127.0.0.1",
    connection: "close",
    ...(body && { "content-length": String(body.length) }),
    ...headers,
  };
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  const text = await exchangeBytes(port, `${method} ${path} HTTP/1.1\r\n${head.join("")}\r\n${body}`);
  const [answer = "", content = ""] = text.split("\r\n\r\n");
  return { id: /^x-request-id: (.*)$/im.exec(answer)?.[1], reason: readReason(content) };
};

const overHttp2: Send = async ({ url }, { method = "GET", path = "/probe/ask", headers = {}, body = "" }) => {
  const { host = "127.0.0.1", ...others } = headers;
  const head = { ":method": method, ":path": path, ":authority": host, ...others };
  const answer = await request(connectHttp2(url), head, body === "" ? undefined : body);
  const id = answer.headers["x-request-id"];
  return { id: typeof id === "string" ? id : undefined, reason: readReason(String(answer.body)) };
};

const made = /^[0-9a-f]{12}-[0-9a-z]+$/;

describe.each([
  ["HTTP/1.1", overHttp1],
  ["HTTP/2", overHttp2],
])("over %s, an answer to", (_version, send) => {
  it.each(Object.entries(refusals))("%s has a request ID", async (_what, refused) => {
    const place = await serve();
    const [first, second] = [await send(place, refused), await send(place, refused)];
    expect(first).toEqual({ reason: refused.reason, id: expect.stringMatching(made) });
    expect(second.id).toMatch(made);
    expect(second.id).not.toBe(first.id);
    const mine = { ...refused, headers: { ...refused.headers, "x-request-id": "mine:1.a_b-c" } };
    expect((await send(place, mine)).id).toBe("mine:1.a_b-c");
    expect(place.lines).toEqual([]);
  });

  it.each(["", "a b", "<script>", `a${"b".repeat(128)}`, "\u00e9", "a,b"])(
    "a request whose own ID is not safe to log has another: %j",
    async (given) => {
      const place = await serve();
      const headers = { "x-request-id": given };
      expect((await send(place, { reason: undefined, path: "/probe/nothing", headers })).id).toMatch(made);
    },
  );

  it("a call has the ID of the line in the log, if the answer cannot be written", async () => {
    const place = await serve({}, { look: () => ({ data: 5 as unknown as Uint8Array }) });
    const { id, reason } = await send(place, { reason: "INTERNAL", path: "/probe/look" });
    expect({ id, reason }).toEqual({ id: expect.stringMatching(made), reason: "INTERNAL" });
    expect(place.lines).toEqual([
      expect.objectContaining({ msg: "call failed outside its handler", requestId: id }),
    ]);
  });
});

it("an answer to a method that nobody registered has a request ID, over HTTP/2", async () => {
  const place = await serve();
  const { id, reason } = await overHttp2(place, { reason: undefined, method: "BREW" });
  expect({ id, reason }).toEqual({ id: expect.stringMatching(made), reason: "METHOD_UNKNOWN" });
});

it("a request ID does not enter the compression table of its connection", async () => {
  const { url } = await serve();
  const { headers } = await request(connectHttp2(url), { ":path": "/probe/ask", ":authority": "127.0.0.1" });
  expect(Reflect.get(headers, http2.sensitiveHeaders)).toEqual(["x-request-id"]);
});

describe("an answer to bytes that are no request", () => {
  it.each([
    ["a method that nobody registered", "BREW / HTTP/1.1\r\nhost: a\r\n\r\n"],
    ["garbage", "garbage\r\n\r\n"],
    ["CONNECT", "CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n"],
    ["a head far beyond the limit", `GET / HTTP/1.1\r\nx-much: ${"a".repeat(10_000)}\r\n\r\n`],
  ])("has a request ID: %s", async (_what, bytes) => {
    const { port } = await serve({ maxMetadataBytes: 1000 });
    expect(/^x-request-id: (.*)$/im.exec(await exchangeBytes(port, bytes))?.[1]).toMatch(made);
  });
});

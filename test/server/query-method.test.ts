/** QUERY (RFC 10008) as received over a connection. */
import { once } from "node:events";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { endAfterAll } from "../support/at-end.ts";
import { describeService, implementUnary } from "../transcoding/rules.ts";
import {
  connectHttp2,
  connectTcp,
  exchangeBytes,
  jsonRefusalOf,
  type RawAnswer,
  readStream,
  readToEnd,
  type SameRequest,
  versions,
} from "./raw.ts";
import { type LocalServer, serve } from "./serve.ts";

const origin = "https://console.example.com";
const json = { "content-type": "application/json" };
const question = '{"name":"a"}';

const atEnd = endAfterAll();
let local: LocalServer;
const asked: unknown[] = [];
beforeAll(async () => {
  const query = { custom: { kind: "QUERY", path: "/v1/find" }, body: "*" };
  const service = describeService([{ post: "/v1/find", body: "*", additionalBindings: [query] }]);
  const implementation = implementUnary(service, () => (message) => {
    asked.push(Reflect.get(message, "name"));
    return { name: "found" };
  });
  local = await serve({ services: [implementation], corsOrigins: [origin] }, atEnd);
});
beforeEach(() => void asked.splice(0));

type Headers = Readonly<Record<string, string>>;

function headOf(headers: Headers, path: string): string {
  const lines = Object.entries({ host: "localhost", connection: "close", ...headers });
  return `QUERY ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
}

/** Sends a QUERY to /v1/find, unless the request says otherwise. */
type Send = (request: Partial<SameRequest>) => Promise<RawAnswer>;

describe.each(versions)("QUERY over $over", ({ ask }) => {
  const send: Send = (sent) => ask(local, { method: "QUERY", path: "/v1/find", ...sent });
  it("is answered and may not be cached", async () => {
    const answer = await send({ headers: json, body: question });
    expect([answer.status, answer.headers["cache-control"]]).toEqual([200, "no-store"]);
    expect(JSON.parse(answer.body.toString())).toMatchObject({ name: "found" });
    expect(asked).toEqual(["a"]);
  });

  it.each([
    ["/v1/find", "GET", 405, "OPTIONS, POST, QUERY"],
    ["/v1/find", "OPTIONS", 204, "OPTIONS, POST, QUERY"],
    ["/livez", "QUERY", 405, "GET, HEAD"],
    ["/testing.Ruled/Rpc1", "QUERY", 405, "POST"],
    ["/nowhere", "QUERY", 404, undefined],
  ])("at %s: %s is answered with %i and Allow", async (path, method, status, allow) => {
    const answer = await send({ path, method });
    expect([answer.status, answer.headers.allow]).toEqual([status, allow]);
    expect(answer.headers["accept-query"]).toBe(path === "/v1/find" ? "application/json" : undefined);
  });

  it("with a body but no content-type is refused for its path first", async () => {
    expect((await send({ body: question, path: "/livez" })).status).toBe(405);
    expect((await send({ body: question, path: "/nowhere" })).status).toBe(404);
  });

  it.each([
    ["another site", { "sec-fetch-site": "cross-site" }],
    ["another origin", { origin: "https://evil.example.com" }],
    [
      "another site as a navigation",
      { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
    ],
  ])("is refused for a page from %s", async (_what, headers: Headers) => {
    const answer = await send({ headers: { ...json, ...headers }, body: question });
    expect([answer.status, jsonRefusalOf(answer.body).reason]).toEqual([403, "CROSS_SITE_REFUSED"]);
    expect(asked).toEqual([]);
  });

  it("is allowed for a page of a listed origin after a preflight", async () => {
    const preflight = { origin, "access-control-request-method": "QUERY" };
    const allowed = await send({ headers: preflight, method: "OPTIONS" });
    expect(allowed.status).toBe(204);
    expect(String(allowed.headers["access-control-allow-methods"]).split(", ")).toContain("QUERY");
    const answer = await send({
      headers: { ...json, origin, "sec-fetch-site": "cross-site" },
      body: question,
    });
    expect([answer.status, answer.headers["access-control-allow-origin"]]).toEqual([200, origin]);
  });
});

describe("the body of a QUERY", () => {
  it("may arrive in chunks over HTTP/1.1", async () => {
    const head = headOf({ ...json, "transfer-encoding": "chunked" }, "/v1/find");
    const text = await exchangeBytes(local.port, `${head}4\r\n{"na\r\n8\r\nme":"a"}\r\n0\r\n\r\n`);
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
    expect(asked).toEqual(["a"]);
  });

  it("may have a length over HTTP/2", async () => {
    const answer = await versions[1].ask(local, {
      method: "QUERY",
      path: "/v1/find",
      headers: { ...json, "content-length": String(question.length) },
      body: question,
    });
    expect(answer.status).toBe(200);
    expect(asked).toEqual(["a"]);
  });

  it("ends before the next request on the connection", async () => {
    const keep = { ...json, connection: "keep-alive", "content-length": String(question.length) };
    const one = headOf(keep, "/v1/find") + question;
    const last = headOf({ ...json, "content-length": "2" }, "/v1/find");
    const text = await exchangeBytes(local.port, `${one}${one}${last}{}`);
    expect(text.match(/HTTP\/1\.1 200 /g)).toHaveLength(3);
    expect(asked).toEqual(["a", "a", ""]);
  });

  it("is awaited over HTTP/1.1 once the head is accepted", async () => {
    const socket = connectTcp(local.port);
    const head = { ...json, expect: "100-continue", "content-length": String(question.length) };
    socket.write(headOf(head, "/v1/find"));
    const [first] = await once(socket, "data");
    expect(String(first)).toMatch(/^HTTP\/1\.1 100 /);
    const rest = readToEnd(socket);
    socket.write(question);
    expect(await rest).toMatch(/^HTTP\/1\.1 200 /);
    expect(asked).toEqual(["a"]);
  });

  it("is awaited over HTTP/2 once the head is accepted", async () => {
    const stream = connectHttp2(local.url).request({
      ":method": "QUERY",
      ":path": "/v1/find",
      expect: "100-continue",
      ...json,
    });
    stream.once("continue", () => stream.end(question));
    expect((await readStream(stream)).status).toBe(200);
    expect(asked).toEqual(["a"]);
  });
});

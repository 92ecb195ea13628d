import { createServiceImplSpec } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Probe } from "../gen/probing/probe_pb.ts";
import { headOf } from "./probe.ts";
import { connectHttp2, exchangeBytes, jsonRefusalOf, request, versions } from "./raw.ts";
import { collectLines, serve } from "./serve.ts";

let lines: unknown[];
let asked: string[];
let url: string;
let port: number;
beforeEach(async () => {
  asked = [];
  const collected = collectLines("warn");
  lines = collected.lines;
  ({ url, port } = await serve({
    services: [
      createServiceImplSpec<typeof Probe>(Probe, {
        look: () => ({}),
        ask(item) {
          asked.push(item.text);
          return item;
        },
      }),
    ],
    logger: collected.logger,
    pages: [async (app) => void app.get("/console/:name", (_request, reply) => reply.send("a page"))],
  }));
});
// A caller's mistake is not a server fault.
afterEach(() => expect(lines).toEqual([]));

/** The status, the allow header and the reason of a request, which are the same over HTTP/1.1 and HTTP/2. */
async function send(method: string, path: string) {
  const over2 = await request(connectHttp2(url), { ":method": method, ":path": path }, "");
  const lines = [`${method} ${path} HTTP/1.1`, "host: x", "connection: close", "", ""];
  const text = await exchangeBytes(port, lines.join("\r\n"));
  const [head = "", body = ""] = text.split("\r\n\r\n");
  const [, status] = /^HTTP\/1\.1 (\d+) /.exec(head) ?? [];
  const [, allow] = /^allow: (.*)$/im.exec(head) ?? [];
  const answer = { status: over2.status, allow: over2.headers.allow, ...jsonRefusalOf(over2.body) };
  expect({ status: Number(status), allow, ...jsonRefusalOf(body) }).toEqual(answer);
  return answer;
}

const paths = ["/probe/look", "/probing.Probe/Ask", "/livez", "/", "/console/a.js", "/nothing"];
const unknown = { code: "UNIMPLEMENTED", reason: "METHOD_UNKNOWN" };

it.each(["BREW", "get", "A".repeat(100), "X-1"])("the method %s is refused on every path", async (method) => {
  for (const path of paths) expect(await send(method, path)).toEqual({ status: 501, ...unknown });
});

it.each([
  ["/probe/look", "GET, HEAD, OPTIONS"],
  ["/probe/look?text=a", "GET, HEAD, OPTIONS"],
  ["/probe/ask", "OPTIONS, POST"],
  ["/probing.Probe/Ask", "POST"],
  ["/livez", "GET, HEAD"],
  ["/metrics", "GET, HEAD"],
  ["/", "GET, HEAD"],
  ["/console/a.js", "GET, HEAD"],
  ["/nothing", undefined],
  ["/console/a/b", undefined],
])("another method at %s is refused with Allow: %s", async (path, allow) => {
  const refused = allow
    ? { status: 405, allow, code: "UNIMPLEMENTED", reason: "METHOD_NOT_ALLOWED" }
    : { status: 404, code: "NOT_FOUND", reason: "ROUTE_NOT_FOUND" };
  for (const method of ["QUERY", "PROPFIND", "TRACE", "PATCH"])
    expect(await send(method, path)).toEqual(refused);
});

describe("a Connect GET", () => {
  const look = (query: string) => request(connectHttp2(url), { ":path": `/probing.Probe/Look?${query}` });

  const unsupported = "415 MEDIA_TYPE_UNSUPPORTED";
  it.each([
    ["message=%7B%7D", unsupported, "encoding is missing; add encoding=json or encoding=proto"],
    ["message=%7B%7D&encoding=xml", unsupported, 'encoding is \\"xml\\"; add encoding=json'],
    ["connect=v1&encoding=json&message=e30&connect=v1", "400 PARAMETER_DUPLICATE", "connect"],
    ["encoding=json&message=e30&encoding=json", "400 PARAMETER_DUPLICATE", "encoding"],
    ["encoding=json&base64=1&message=e30&base64=1", "400 PARAMETER_DUPLICATE", "base64"],
    ["encoding=json&message=e30&message=e30", "400 PARAMETER_DUPLICATE", "message"],
    ["encoding=json&message=%7B%22text%22:%22%ff%22%7D", "400 TARGET_INVALID", ""],
    ["encoding=json&message=%7B%22text%22:%22%%22%7D", "400 TARGET_INVALID", ""],
    ["encoding=json&message=%7B%22text%22:%22%zz%22%7D", "400 TARGET_INVALID", ""],
  ])("with the query %j is refused: %s %s", async (query, refused, text) => {
    const answer = await look(query);
    expect(`${answer.status} ${jsonRefusalOf(answer.body).reason}`).toBe(refused);
    expect(answer.body.toString()).toContain(text);
  });

  it("is answered and may not be cached", async () => {
    const answer = await look("encoding=json&message=%7B%7D");
    expect([answer.status, answer.headers["cache-control"]]).toEqual([200, "no-store"]);
  });

  it("cannot call a stream", async () => {
    const answer = await request(connectHttp2(url), {
      ":path": "/probing.Probe/Watch?encoding=json&message=%7B%7D",
    });
    expect([answer.status, answer.headers.allow]).toEqual([405, "POST"]);
    expect(answer.body.toString()).toContain("a stream cannot be called with GET");
  });
});

it("a Connect stream called like a unary call gets the supported media types", async () => {
  const answer = await request(connectHttp2(url), headOf("Watch", "application/json"), "{}");
  expect(answer.status).toBe(415);
  expect(answer.body.toString()).toContain("send application/connect+json, application/connect+proto");
});

describe("the method CONNECT is refused with 501", () => {
  it("over HTTP/1.1, and ends the connection", async () => {
    const answer = await exchangeBytes(
      port,
      "CONNECT example.org:443 HTTP/1.1\r\nhost: example.org:443\r\n\r\n",
    );
    expect(answer).toMatch(/^HTTP\/1\.1 501 /);
    expect(jsonRefusalOf(answer.slice(answer.indexOf("\r\n\r\n")))).toEqual(unknown);
  });

  it("over HTTP/2, and the connection keeps working", async () => {
    const session = connectHttp2(url);
    const answer = await request(session, { ":method": "CONNECT", ":authority": "example.org:443" }, "");
    expect([answer.status, jsonRefusalOf(answer.body)]).toEqual([501, unknown]);
    expect((await request(session, { ":path": "/livez" })).status).toBe(200);
  });
});

const json = { "content-type": "application/json" };
const question = '{"text":"a"}';

// test/transcoding/query-method.test.ts tests what REST does with QUERY (RFC 10008).
describe.each(versions)("QUERY over $over", ({ ask }) => {
  const send = (path: string, more = {}) =>
    ask({ port }, { method: "QUERY", path, headers: { ...json, ...more }, body: question });

  it("is answered on its path, with or without the length of its body, and allowed on no other", async () => {
    for (const length of [{}, { "content-length": String(question.length) }])
      expect((await send("/probe/find", length)).status).toBe(200);
    expect(asked).toEqual(["a", "a"]);
    for (const path of ["/livez", "/probing.Probe/Ask"]) expect((await send(path)).status).toBe(405);
    expect((await send("/nowhere")).status).toBe(404);
  });

  it("is refused for a page of another origin", async () => {
    const answer = await send("/probe/find", { origin: "https://evil.example.com" });
    expect([answer.status, jsonRefusalOf(answer.body).reason]).toEqual([403, "CROSS_SITE_REFUSED"]);
    expect(asked).toEqual([]);
    expect(lines.splice(0)).toMatchObject([{ reason: "CROSS_SITE_REFUSED" }]);
  });
});

it("the body of a QUERY may arrive in chunks over HTTP/1.1, and ends before the next request", async () => {
  const head = "QUERY /probe/find HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
  const whole = `${head}content-length: ${question.length}\r\n\r\n${question}`;
  const chunks = '4\r\n{"te\r\n8\r\nxt":"b"}\r\n0\r\n\r\n';
  const last = `${head}transfer-encoding: chunked\r\nconnection: close\r\n\r\n${chunks}`;
  const text = await exchangeBytes(port, whole + whole + last);
  expect(text.match(/HTTP\/1\.1 200 /g)).toHaveLength(3);
  expect(asked).toEqual(["a", "a", "b"]);
});

it("GET / lists every REST call, and announces a longer keep-alive than load balancers use", async () => {
  const answer = await fetch(url);
  expect(answer.headers.get("keep-alive")).toBe("timeout=75");
  expect(answer.headers.get("content-type")).toMatch(/^text\/plain/);
  expect(await answer.text()).toMatch(/^POST +\/probe\/ask +probing\.Probe\.Ask$/m);
});

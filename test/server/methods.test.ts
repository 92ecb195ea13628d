import { createServiceImplSpec } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Probe } from "../gen/probing/probe_pb.ts";
import { headOf } from "./probe.ts";
import { connectHttp2, exchangeBytes, jsonRefusalOf, request } from "./raw.ts";
import { collectLines, serve } from "./serve.ts";

let lines: unknown[];
let url: string;
let port: number;
beforeEach(async () => {
  const collected = collectLines("warn");
  lines = collected.lines;
  ({ url, port } = await serve({
    services: [createServiceImplSpec<typeof Probe>(Probe, { look: () => ({}) })],
    logger: collected.logger,
    pages: [async (app) => void app.get("/console/:name", (_request, reply) => reply.send("a page"))],
  }));
});
// A caller's mistake is not a server fault.
afterEach(() => expect(lines).toEqual([]));

/**
 * Sends a request over HTTP/1.1 and HTTP/2, and reads the status, the allow header and the reason of each.
 */
async function send(method: string, path: string) {
  const over2 = await request(connectHttp2(url), { ":method": method, ":path": path }, "");
  const lines = [`${method} ${path} HTTP/1.1`, "host: x", "connection: close", "", ""];
  const text = await exchangeBytes(port, lines.join("\r\n"));
  const [head = "", body = ""] = text.split("\r\n\r\n");
  const [, status] = /^HTTP\/1\.1 (\d+) /.exec(head) ?? [];
  const [, allow] = /^allow: (.*)$/im.exec(head) ?? [];
  return [
    { status: Number(status), allow, ...jsonRefusalOf(body) },
    { status: over2.status, allow: over2.headers.allow, ...jsonRefusalOf(over2.body) },
  ];
}

const paths = ["/probe/look", "/probing.Probe/Ask", "/livez", "/", "/console/a.js", "/nothing"];

describe("an unregistered method", () => {
  it.each(["BREW", "get", "A".repeat(100), "X-1"])(
    "is refused with 501 on every path: %s",
    async (method) => {
      const refused = { status: 501, allow: undefined, code: "UNIMPLEMENTED", reason: "METHOD_UNKNOWN" };
      for (const path of paths) expect(await send(method, path)).toEqual([refused, refused]);
    },
  );
});

describe.each(["QUERY", "PROPFIND", "TRACE", "PATCH"])("the method %s", (method) => {
  it.each([
    ["/probe/look", "GET, HEAD, OPTIONS"],
    ["/probe/look?text=a", "GET, HEAD, OPTIONS"],
    ["/probe/ask", "OPTIONS, POST"],
    ["/probing.Probe/Ask", "POST"],
    ["/livez", "GET, HEAD"],
    ["/metrics", "GET, HEAD"],
    ["/", "GET, HEAD"],
    ["/console/a.js", "GET, HEAD"],
  ])("is refused with 405 and Allow at %s", async (path, allow) => {
    const refused = { status: 405, allow, code: "UNIMPLEMENTED", reason: "METHOD_NOT_ALLOWED" };
    expect(await send(method, path)).toEqual([refused, refused]);
  });

  it.each(["/nothing", "/console/a/b"])("finds nothing at %s", async (path) => {
    for (const answer of await send(method, path)) {
      expect(answer).toMatchObject({ status: 404, reason: "ROUTE_NOT_FOUND" });
    }
  });
});

describe("a Connect GET", () => {
  it.each([
    ["/probing.Probe/Look?message=%7B%7D", "encoding is missing; add encoding=json or encoding=proto"],
    ["/probing.Probe/Look?message=%7B%7D&encoding=xml", 'encoding is \\"xml\\"; add encoding=json'],
  ])("reports what its query lacks: %s", async (path, message) => {
    const answer = await request(connectHttp2(url), { ":path": path });
    expect([answer.status, jsonRefusalOf(answer.body).reason]).toEqual([415, "MEDIA_TYPE_UNSUPPORTED"]);
    expect(answer.body.toString()).toContain(message);
  });

  it.each(["connect=v1", "encoding=json", "base64=1", "message=%7B%7D"])(
    "must have each parameter only once: %s",
    async (parameter) => {
      const path = `/probing.Probe/Look?connect=v1&encoding=json&base64=1&message=e30&${parameter}`;
      const answer = await request(connectHttp2(url), { ":path": path });
      expect([answer.status, jsonRefusalOf(answer.body).reason]).toEqual([400, "PARAMETER_DUPLICATE"]);
    },
  );

  it.each(["%ff", "%", "%zz"])("must be valid percent-encoded UTF-8: %s", async (text) => {
    const path = `/probing.Probe/Look?encoding=json&message=%7B%22text%22:%22${text}%22%7D`;
    const answer = await request(connectHttp2(url), { ":path": path });
    expect([answer.status, jsonRefusalOf(answer.body).reason]).toEqual([400, "TARGET_INVALID"]);
  });

  it("is answered and may not be cached", async () => {
    const path = "/probing.Probe/Look?encoding=json&message=%7B%7D";
    const answer = await request(connectHttp2(url), { ":path": path });
    expect([answer.status, answer.headers["cache-control"]]).toEqual([200, "no-store"]);
  });

  it("cannot call a stream", async () => {
    const path = "/probing.Probe/Watch?encoding=json&message=%7B%7D";
    const answer = await request(connectHttp2(url), { ":path": path });
    expect([answer.status, answer.headers.allow]).toEqual([405, "POST"]);
    expect(answer.body.toString()).toContain("a stream cannot be called with GET");
  });
});

describe("a Connect stream called like a unary call", () => {
  it("reports the supported media types", async () => {
    const answer = await request(connectHttp2(url), headOf("Watch", "application/json"), "{}");
    expect(answer.status).toBe(415);
    expect(answer.body.toString()).toContain("send application/connect+json, application/connect+proto");
  });
});

describe("the method CONNECT", () => {
  const refused = { code: "UNIMPLEMENTED", reason: "METHOD_UNKNOWN" };

  it("is refused with 501 over HTTP/1.1, and ends the connection", async () => {
    const answer = await exchangeBytes(
      port,
      "CONNECT example.org:443 HTTP/1.1\r\nhost: example.org:443\r\n\r\n",
    );
    expect(answer).toMatch(/^HTTP\/1\.1 501 /);
    expect(jsonRefusalOf(answer.slice(answer.indexOf("\r\n\r\n")))).toEqual(refused);
  });

  it("is refused with 501 over HTTP/2, and the connection keeps working", async () => {
    const session = connectHttp2(url);
    const answer = await request(session, { ":method": "CONNECT", ":authority": "example.org:443" }, "");
    expect([answer.status, jsonRefusalOf(answer.body)]).toEqual([501, refused]);
    expect((await request(session, { ":path": "/livez" })).status).toBe(200);
  });
});

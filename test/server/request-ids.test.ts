import http2 from "node:http2";
import { describe, expect, it } from "vitest";
import { serveProbe } from "./probe.ts";
import { connectHttp2, exchangeBytes, request, requestHttp1 } from "./raw.ts";
import { collectLines } from "./serve.ts";

// refusals.test.ts tests that every refusal has a request ID.
const made = /^[0-9a-f]{12}-[0-9a-z]+$/;

describe("an answer", () => {
  it("has a new ID, or the ID of its request if there is one, even for OPTIONS", async () => {
    const { url } = await serveProbe();
    const idOf = async (headers: http2.OutgoingHttpHeaders): Promise<unknown> =>
      (await request(connectHttp2(url), { ":method": "OPTIONS", ":path": "/probe/ask", ...headers })).headers[
        "x-request-id"
      ];
    const ids = [await idOf({}), await idOf({})];
    for (const id of ids) expect(id).toMatch(made);
    expect(ids[0]).not.toBe(ids[1]);
    expect(await idOf({ "x-request-id": "mine:1.a_b-c" })).toBe("mine:1.a_b-c");
  });

  it.each(["", "a b", "<script>", `a${"b".repeat(128)}`, "\u00e9", "a,b"])(
    "has a new ID if the ID of its request is not safe to log: %j",
    async (given) => {
      const headers = { "x-request-id": given };
      const { url } = await serveProbe();
      const over2 = await request(connectHttp2(url), { ":path": "/probe/nothing", ...headers });
      for (const answer of [over2, await requestHttp1(`${url}/probe/nothing`, { headers })])
        expect(answer.headers["x-request-id"]).toMatch(made);
    },
  );

  it.each(["/probe/look?x=1", "/probe/watch?x=1", "/probing.Probe/Look?encoding=json&message=x"])(
    "to a call that is refused before its handler runs has the ID of its log line: %s",
    async (path) => {
      const { lines, logger } = collectLines();
      const { url } = await serveProbe({}, {}, { logger });
      const { headers } = await requestHttp1(`${url}${path}`);
      expect(headers["x-request-id"]).toMatch(made);
      expect(lines.map(({ msg, requestId }) => [msg, requestId])).toEqual([
        ["call refused", headers["x-request-id"]],
      ]);
    },
  );

  it("has an ID that does not enter the HPACK table of its connection", async () => {
    const { headers } = await request(connectHttp2((await serveProbe()).url), { ":path": "/probe/ask" });
    expect(Reflect.get(headers, http2.sensitiveHeaders)).toEqual(["x-request-id"]);
  });

  it.each([
    ["an unregistered method", "BREW / HTTP/1.1\r\nhost: a\r\n\r\n"],
    ["garbage", "garbage\r\n\r\n"],
    ["CONNECT", "CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n"],
    ["a head far beyond the limit", `GET / HTTP/1.1\r\nx-much: ${"a".repeat(10_000)}\r\n\r\n`],
  ])("to bytes that are not a request has an ID: %s", async (_what, bytes) => {
    const { port } = await serveProbe({}, { maxMetadataBytes: 1000 });
    expect(/^x-request-id: (.*)$/im.exec(await exchangeBytes(port, bytes))?.[1]).toMatch(made);
  });
});

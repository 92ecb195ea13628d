/** QUERY (RFC 10008) as received over a connection. */
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { endAfterAll } from "../support/at-end.ts";
import { describeService, implementUnary } from "../transcoding/rules.ts";
import { exchangeBytes, jsonRefusalOf, type RawAnswer, type SameRequest, versions } from "./raw.ts";
import { type LocalServer, serve } from "./serve.ts";

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
  local = await serve({ services: [implementation] }, atEnd);
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
  // test/transcoding/query-method.test.ts tests what REST does with it.
  it("is answered on its path, and allowed on no other", async () => {
    expect((await send({ headers: json, body: question })).status).toBe(200);
    expect(asked).toEqual(["a"]);
    for (const path of ["/livez", "/testing.Ruled/Rpc1"])
      expect((await send({ path, body: question })).status).toBe(405);
    expect((await send({ path: "/nowhere", body: question })).status).toBe(404);
  });

  // request-head.test.ts and browser.test.ts have the other requests of other sites.
  it("is refused for a page of another origin", async () => {
    const answer = await send({ headers: { ...json, origin: "https://evil.example.com" }, body: question });
    expect([answer.status, jsonRefusalOf(answer.body).reason]).toEqual([403, "CROSS_SITE_REFUSED"]);
    expect(asked).toEqual([]);
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
    const headers = { ...json, "content-length": String(question.length) };
    const answer = await versions[1].ask(local, {
      method: "QUERY",
      path: "/v1/find",
      headers,
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
});

import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type AtEnd, endAfterAll } from "../support/at-end.ts";
import { runToEndHere } from "../support/run-here.ts";
import { serveProbe } from "./probe.ts";
import { envelope, type RawAnswer, type SameRequest, type ServerPlace, versions } from "./raw.ts";
import { serveTls } from "./tls-clients.ts";

const timeout = 180_000;
const listed = "https://console.example.com";
const unlisted = "https://elsewhere.example.com";

const post = (path: string, type: string, body: string | Buffer): SameRequest => ({
  method: "POST",
  path,
  headers: { "content-type": type },
  body,
});

/** Requests in every protocol and to every part of the server. */
const requests: Readonly<Record<string, SameRequest>> = {
  "an answer of REST": { path: "/probe/look?text=x" },
  "a refusal of REST": post("/probe/ask", "application/json", "{"),
  "a stream of REST": { path: "/probe/watch?text=x" },
  "a refusal of a path that nobody has": { path: "/nowhere" },
  "a refusal of a method that a path has not": { method: "DELETE", path: "/probe/look" },
  "an answer of Connect": post("/probing.Probe/Ask", "application/json", "{}"),
  "a refusal of Connect": post("/probing.Probe/Ask", "application/json", "{"),
  "a stream of Connect": post("/probing.Probe/Watch", "application/connect+json", envelope("{}")),
  "an answer of gRPC-Web": post("/probing.Probe/Ask", "application/grpc-web+proto", envelope("")),
  "a refusal of gRPC-Web": post("/probing.Probe/None", "application/grpc-web+proto", envelope("")),
  "a stream of gRPC-Web": post("/probing.Probe/Watch", "application/grpc-web+proto", envelope("")),
  "a refusal of gRPC": post("/probing.Probe/None", "application/grpc", envelope("")),
  "a stream of gRPC": post("/probing.Probe/Watch", "application/grpc", envelope("")),
  "a failure of a handler": post("/probing.Probe/Collect", "application/connect+json", envelope("{}")),
  "the list of calls": { path: "/" },
  "the liveness": { path: "/livez" },
  "the readiness": { path: "/readyz" },
  "the metrics": { path: "/metrics" },
  "an answer without its body": { method: "HEAD", path: "/livez" },
  "a refusal of OPTIONS": { method: "OPTIONS", path: "/probe/look" },
  "a refusal of too much metadata": { path: "/livez", headers: { "x-much": "x".repeat(20_000) } },
  "a refusal of a bad media type": post("/probe/ask", "nonsense;;", "{}"),
};

const collect = (): never => {
  throw new Error("a bug");
};

/** Serves for the whole file. */
function start(atEnd: AtEnd = onTestFinished, corsOrigins: readonly string[] = []): Promise<ServerPlace> {
  return serveProbe({ collect }, {}, { corsOrigins, atEnd });
}

/** Headers that every answer has, and headers that none has. */
const securityHeaders = { "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" };
/** For a year, over TLS only. */
const hsts = "strict-transport-security";
const hiddenIn = ({ headers }: RawAnswer): string[] =>
  Object.keys(headers).filter((name) => /^(server|via|x-powered-by|x-runtime|x-aspnet-version)$/.test(name));

/** The CORS headers of an answer. */
function corsOf({ headers }: RawAnswer): Record<string, unknown> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith("access-control-")));
}

/** The names in the `vary` header. */
function varyOf({ headers }: RawAnswer): string[] {
  return String(headers.vary ?? "")
    .toLowerCase()
    .split(/\s*,\s*/)
    .filter(Boolean)
    .sort();
}

describe.each(versions)("over $over", { timeout }, ({ ask }) => {
  const atEnd = endAfterAll();
  let plain: ServerPlace;
  let secure: ServerPlace;
  let open: ServerPlace;
  beforeAll(async () => {
    plain = await start(atEnd);
    secure = await serveTls({}, atEnd);
    open = await start(atEnd, [listed, "http://localhost:5173"]);
  }, timeout);

  it.each(Object.entries(requests))("%s has the headers that protect browsers", async (_name, request) => {
    const from = (place: ServerPlace, origin?: string) =>
      ask(place, { ...request, headers: { ...request.headers, ...(origin && { origin }) } });
    const answer = await from(plain, listed);
    expect(answer.headers).toMatchObject(securityHeaders);
    expect(hiddenIn(answer)).toEqual([]);
    expect(answer.headers).not.toHaveProperty(hsts);
    expect((await from(secure)).headers[hsts]).toBe("max-age=31536000");
    // While no origin is listed, there is nothing that a cache could mix up.
    expect([corsOf(answer), varyOf(answer).includes("origin")]).toEqual([{}, false]);
    const read = await from(open, listed);
    expect(corsOf(read)).toEqual({
      "access-control-allow-origin": listed,
      "access-control-expose-headers": "*",
    });
    expect(varyOf(read)).toContain("origin");
    for (const origin of [unlisted, undefined]) {
      const other = await from(open, origin);
      expect([corsOf(other), varyOf(other).includes("origin")]).toEqual([{}, true]);
    }
  });

  it.each([
    ["Connect", "POST", "/probing.Probe/Ask", "content-type,connect-protocol-version"],
    ["gRPC-Web", "POST", "/probing.Probe/Ask", "content-type,x-grpc-web,x-user-agent"],
    ["REST with a token", "DELETE", "/probe/ask", "authorization,idempotency-key"],
    ["REST without headers", "PATCH", "/probe/look", undefined],
    ["REST with a query in its body", "QUERY", "/probe/look", "content-type"],
    ["an unknown path", "PUT", "/nowhere", "authorization"],
  ])("a listed origin may call %s after a preflight", async (_what, method, path, names) => {
    const asked = {
      origin: "http://localhost:5173",
      "access-control-request-method": method,
      ...(names && { "access-control-request-headers": names }),
    };
    const answer = await ask(open, { method: "OPTIONS", path, headers: asked });
    expect([answer.status, answer.body.length]).toEqual([204, 0]);
    expect(corsOf(answer)).toMatchObject({
      "access-control-allow-origin": "http://localhost:5173",
      "access-control-allow-methods": expect.stringContaining(method),
      "access-control-max-age": expect.stringMatching(/^\d+$/),
    });
    expect(answer.headers["access-control-allow-headers"]).toBe(names);
    // Pages send tokens themselves; the server does not use cookies.
    expect(answer.headers).not.toHaveProperty("access-control-allow-credentials");
    expect(varyOf(answer)).toContain("origin");
  });

  it.each([
    ["an unlisted origin", unlisted],
    ["an origin that is null", "null"],
    ["an origin that begins like a listed one", `${listed}.example.org`],
    ["an origin with another scheme", "http://console.example.com"],
    ["an origin with a path", `${listed}/`],
    ["an origin in other letters", "https://Console.example.com"],
  ])("a preflight from %s gets no CORS headers", async (_what, origin) => {
    const headers = { origin, "access-control-request-method": "POST" };
    const answer = await ask(open, { method: "OPTIONS", path: "/probing.Probe/Ask", headers });
    expect(corsOf(answer)).toEqual({});
    expect(answer.status).toBeGreaterThanOrEqual(400);
  });
});

describe("a server with TLS", { timeout }, () => {
  it.each([
    ["localhost", false],
    ["localhost:8443", false],
    ["LOCALHOST:8443", false],
    ["console.localhost:8443", false],
    ["localhost.example.com", true],
    ["notlocalhost", true],
    ["gateway.example.com:8443", true],
  ])("addressed as %s: sends HSTS: %s", async (host, isTold) => {
    const place = await serveTls();
    const [{ ask: ask1 }, { ask: ask2 }] = versions;
    const one = await ask1(place, { path: "/livez", headers: { host } });
    const two = await ask2(place, { path: "/livez", headers: { ":authority": host } });
    expect([one, two].map(({ headers }) => hsts in headers)).toEqual([isTold, isTold]);
  });
});

it("the answer to a unary gRPC call does not reveal the server software, and has no CORS header while no origin is listed", async () => {
  const place = await start();
  const { headers, ...unary } = post("/probing.Probe/Ask", "application/grpc", envelope(""));
  const origin = `http://127.0.0.1:${place.port}`;
  const answer = await versions[1].ask(place, { ...unary, headers: { ...headers, origin } });
  expect(answer.trailers["grpc-status"]).toBe("0");
  expect(hiddenIn(answer)).toEqual([]);
  expect(corsOf(answer)).toEqual({});
});

describe("--cors-origins", { timeout }, () => {
  it.each([
    "*",
    "null",
    "console.example.com",
    "https://console.example.com/path",
    "https://console.example.com:443",
    "https://Console.example.com",
    "https://user@console.example.com",
    "https://*.example.com",
    "https://a.example.com,,https://b.example.com",
    "https://a.example.com https://b.example.com",
    "ftp://console.example.com",
  ])("rejects %j with exit code 2 and a sentence, because it is not an origin", async (origins) => {
    const args = ["serve", "--data-dir", "/dev/null/data", "--host", "192.0.2.1", "--danger-open-to-network"];
    const { code, stdout, stderr } = await runToEndHere([...args, "--cors-origins", origins]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(/^qsp: --cors-origins: [^\n]*\n$/);
  });
});

import { describe, expect, it, onTestFinished, vi } from "vitest";
import { findReason } from "../../src/errors.ts";
import { createCrossSiteLog } from "../../src/server/cross-site-log.ts";
import { createHeadCheck, createHostCheck } from "../../src/server/request-head.ts";
import { serveCounted, serveProbe } from "./probe.ts";
import { connectHttp2, connectTcp, exchangeBytes, jsonRefusalOf, readStream, request } from "./raw.ts";
import { collectLines } from "./serve.ts";

const timeout = 180_000;
const allowed = "https://console.example.com";

/** Serves like a server without access control. */
const start = () => serveCounted({ isHostAllowed: createHostCheck([], "127.0.0.1"), corsOrigins: [allowed] });
const json = "content-type: application/json";
const ask = "POST /probe/ask HTTP/1.1";

/**
 * Sends an HTTP/1.1 request with exactly these lines.
 *
 * @returns status and reason
 */
async function send(port: number, lines: readonly string[], body = "{}"): Promise<string> {
  const answer = await exchangeBytes(port, [...lines, "connection: close", "", body].join("\r\n"));
  const [, status = ""] = answer.split(" ");
  const [, json = ""] = answer.split("\r\n\r\n");
  return status === "200" ? status : `${status} ${jsonRefusalOf(json).reason}`;
}

/**
 * Why an HTTP/1.1 request of exactly these lines is refused; undefined if it is not. refusals.test.ts tests how a
 * server refuses it.
 */
function faultOf(
  [first = "", ...lines]: readonly string[],
  { allowedHosts = [] as readonly string[], isCall = true } = {},
): string | undefined {
  const isHostAllowed = createHostCheck(allowedHosts, "127.0.0.1");
  const find = createHeadCheck({ maxMetadataBytes: 65_536, isHostAllowed, corsOrigins: new Set([allowed]) });
  const [method = "", target = ""] = first.split(" ");
  const fields = lines.map((line) => /^([^:]*): ?(.*)$/.exec(line)?.slice(1) ?? []);
  const headers = Object.fromEntries(fields.map(([name = "", value]) => [name.toLowerCase(), value]));
  const head = {
    method,
    target,
    headers,
    rawHeaders: fields.flat(),
    httpVersion: "1.1",
    hasBody: true,
  } as const;
  const fault = find(head, isCall);
  return fault && findReason(fault);
}

describe("the host of a request", () => {
  it.each([
    ["localhost", [], undefined],
    ["localhost:8080", [], undefined],
    ["LOCALHOST", [], undefined],
    ["localhost.", [], undefined],
    ["console.localhost:8080", [], undefined],
    ["127.0.0.1", [], undefined],
    ["127.0.0.53:8080", [], undefined],
    ["[::1]:8080", [], undefined],
    ["pqc.example.com", ["pqc.example.com"], undefined],
    ["a.example.com", [".example.com"], undefined],
    ["anything.example.org", ["*"], undefined],
    ["evil.example.com", [], "HOST_NOT_ALLOWED"],
    ["localhost.evil.example.com", [], "HOST_NOT_ALLOWED"],
    ["127.0.0.1.evil.example.com", [], "HOST_NOT_ALLOWED"],
    ["10.0.0.1", [], "HOST_NOT_ALLOWED"],
    ["[fe80::1]", [], "HOST_NOT_ALLOWED"],
    ["0.0.0.0", [], "HOST_NOT_ALLOWED"],
    ["example.com", [".example.com"], "HOST_NOT_ALLOWED"],
    ["evilexample.com", [".example.com"], "HOST_NOT_ALLOWED"],
    // Not even a host.
    ["localhost/evil", [], "HTTP_INVALID"],
    ["evil@localhost", [], "HTTP_INVALID"],
    ["", [], "HTTP_INVALID"],
  ])("%s with --allowed-hosts %j: %s", (host, allowedHosts, fault) => {
    expect(faultOf([ask, `host: ${host}`, json], { allowedHosts })).toBe(fault);
  });

  it.each([
    ["no Host", []],
    ["two Hosts", ["host: localhost", "host: evil.example.com"]],
    ["two Hosts that are alike", ["host: localhost", "Host: localhost"]],
  ])("is refused if there is %s", (_, lines) => {
    expect(faultOf([ask, ...lines, json])).toBe("HTTP_INVALID");
  });

  it.each([
    ["http://evil.example.com/probe/ask", "host: localhost", "HOST_NOT_ALLOWED"],
    ["http://localhost@evil.example.com/probe/ask", "host: localhost", "HTTP_INVALID"],
    ["ftp://localhost/probe/ask", "host: localhost", "HTTP_INVALID"],
    ["localhost/probe/ask", "host: localhost", "HTTP_INVALID"],
    ["http://localhost:8080/probe/ask", "host: evil.example.com", undefined],
  ])("comes from the absolute target %s, not from %s", (target, host, fault) => {
    expect(faultOf([`POST ${target} HTTP/1.1`, host, json])).toBe(fault);
  });

  it("comes from an absolute target without Host, for Connect", async () => {
    const { port } = await start();
    const target = "POST http://localhost:8080/probing.Probe/Ask HTTP/1.1";
    expect(await send(port, [target, json, "content-length: 2"])).toBe("200");
  });

  it("comes from :authority in HTTP/2, which Host may not contradict", async () => {
    const session = connectHttp2((await start()).url);
    const both = { ":authority": "localhost", host: "evil.example.com", ":path": "/livez" };
    expect(jsonRefusalOf((await request(session, both)).body).reason).toBe("HTTP_INVALID");
  });

  it("may be an IP address if the server is not limited to loopback, because a rebinding page needs a name", () => {
    const isAllowed = createHostCheck([], "0.0.0.0");
    const hosts = ["192.0.2.1", "[2001:db8::1]", "localhost", "evil.example.com"];
    expect(hosts.map((host) => isAllowed?.(host))).toEqual([true, true, true, false]);
  });
});

describe("a header that a proxy may read differently if it occurs twice", () => {
  it.each(["content-type", "authorization", "idempotency-key"])("is refused if it does: %s", (name) => {
    for (const second of [name, name.toUpperCase()])
      expect(faultOf([ask, "host: localhost", `${name}: one`, `${second}: two`])).toBe("HTTP_INVALID");
  });
});

describe("a browser request from a page", () => {
  const own = ["host: localhost:8080", json];
  const navigation = ["sec-fetch-site: cross-site", "sec-fetch-mode: navigate"];
  const link = [...navigation, "sec-fetch-dest: document"];
  it.each([
    ["on our own site", ["sec-fetch-site: same-origin", "origin: http://localhost:8080"]],
    ["on our own site, without its origin", ["sec-fetch-site: same-origin"]],
    ["that a person opens", ["sec-fetch-site: none"]],
    ["on our own site, in a browser that sends no Sec-Fetch-Site", ["origin: http://localhost:8080"]],
    ["on our own site behind TLS", ["origin: https://localhost:8080"]],
    ["on an origin that may call", ["sec-fetch-site: cross-site", `origin: ${allowed}`]],
    ["on an origin that may call, without Sec-Fetch-Site", [`origin: ${allowed}`]],
  ])("is answered: %s", (_, lines) => {
    expect(faultOf([ask, ...own, ...lines])).toBeUndefined();
  });

  it.each([
    ["on another site", ["sec-fetch-site: cross-site", "origin: https://evil.example.com"]],
    ["on another site, without its origin", ["sec-fetch-site: cross-site", "sec-fetch-mode: no-cors"]],
    ["on another port of this machine", ["sec-fetch-site: same-site", "origin: http://localhost:3000"]],
    ["on another site, in a browser that sends no Sec-Fetch-Site", ["origin: https://evil.example.com"]],
    ["in a sandbox", ["origin: null"]],
    ["in a sandbox on another site", ["sec-fetch-site: cross-site", "origin: null"]],
    ["with a form on another site", link],
    ["with two values in Sec-Fetch-Site", ["sec-fetch-site: same-origin, cross-site"]],
  ])("is refused: %s", (_, lines) => {
    expect(faultOf([ask, ...own, ...lines])).toBe("CROSS_SITE_REFUSED");
  });

  it.each([
    "/probe/look?text=x",
    "/probing.Probe/Look?connect=v1&encoding=json&message=%7B%7D",
    "/probe/watch",
  ])("may not call through a link: %s", async (path) => {
    const { port, handled } = await start();
    expect(await send(port, [`GET ${path} HTTP/1.1`, "host: localhost", ...link], "")).toContain("403");
    expect(handled()).toBe(0);
  });

  it("may open a page through a link, but not in a frame", () => {
    const open = ["GET / HTTP/1.1", ...own, ...navigation];
    const isCall = false;
    expect(faultOf([...open, "sec-fetch-dest: document"], { isCall })).toBeUndefined();
    expect(faultOf([...open, "sec-fetch-dest: iframe"], { isCall })).toBe("CROSS_SITE_REFUSED");
  });
});

describe("a request with a body", { timeout }, () => {
  it("needs no content-type if the body is empty", async () => {
    const { port, url } = await start();
    expect(await send(port, [ask, "host: localhost", "content-length: 0"], "")).toBe("200");
    const over2 = await request(connectHttp2(url), { ":path": "/probe/ask", "content-length": 0 }, "");
    expect(over2.status).toBe(200);
  });

  it.each(["chunked", "Chunked"])("may have the transfer coding %s", async (coding) => {
    const { port } = await start();
    const lines = [ask, "host: localhost", json, `transfer-encoding: ${coding}`];
    expect(await send(port, lines, "2\r\n{}\r\n0\r\n\r\n")).toBe("200");
  });

  // RFC 9112, section 6.3: without chunked as the last coding, the length of such a body is unknown.
  it.each([
    ["gzip, chunked", [501, 200]],
    ["gzip\r\ntransfer-encoding: chunked", [501, 200]],
    ["deflate,chunked", [501, 200]],
    ["chunked;a=b, chunked", [501, 200]],
    ["identity", [501]],
    ["foo, identity", [501]],
    // Node's parser refuses it.
    ["chunked, gzip", [400]],
  ])("and the transfer coding %j, then another, are answered: %j", async (coding, statuses) => {
    const { port, handled } = await start();
    const head = [ask, "host: localhost", json, `transfer-encoding: ${coding}`, "", ""].join("\r\n");
    const next = "GET /probe/look HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    const answers = await exchangeBytes(port, `${head}2\r\n{}\r\n0\r\n\r\n${next}`);
    expect([...answers.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => Number(status))).toEqual(
      statuses,
    );
    expect(answers).toMatch(/^connection: close\r$/im);
    expect(handled()).toBe(statuses.length - 1);
  });
});

describe.each([
  ["REST", "/probe/ask", "application/json", "{}", 413, 404],
  ["Connect", "/probing.Probe/Ask", "application/json", "{}", 413, 404],
  ["gRPC-Web", "/probing.Probe/Ask", "application/grpc-web+proto", "\0".repeat(5), 200, 200],
])("a %s request that expects 100 Continue", { timeout }, (_name, path, type, body, tooLarge, unknown) => {
  /** Sends a head, and the body only after 100 Continue. Returns the statuses. */
  const over1 = async (port: number, target: string, length: number): Promise<number[]> => {
    const socket = connectTcp(port);
    const fields = ["host: localhost", `content-type: ${type}`, "expect: 100-continue", "connection: close"];
    const head = [`POST ${target} HTTP/1.1`, ...fields, `content-length: ${length}`, "", ""];
    socket.write(head.join("\r\n"));
    let text = "";
    for await (const bytes of socket) {
      if (text === "" && String(bytes).startsWith("HTTP/1.1 100")) socket.write(body);
      text += bytes;
    }
    return [...text.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => Number(status));
  };
  const over2 = async (url: string, target: string, length: number): Promise<number[]> => {
    const headers = { ":method": "POST", ":path": target, "content-type": type, expect: "100-continue" };
    const stream = connectHttp2(url).request({ ...headers, "content-length": length });
    const statuses: number[] = [];
    stream.on("continue", () => {
      statuses.push(100);
      stream.end(body);
    });
    const { status } = await readStream(stream);
    return [...statuses, status];
  };

  it.each([
    ["receives 100 Continue, and is answered", path, body.length, [100, 200]],
    ["is refused at once if its length exceeds the limit of its call", path, 99_999_999, [tooLarge]],
    ["is refused at once if its path is unknown", "/nothing", body.length, [unknown]],
  ])("%s", async (_what, target, length, statuses) => {
    const { port, url, handled } = await start();
    expect(await over1(port, target, length)).toEqual(statuses);
    expect(await over2(url, target, length)).toEqual(statuses);
    expect(handled()).toBe(statuses.length === 2 ? 2 : 0);
  });
});

describe("the Connect version", { timeout }, () => {
  const post = ["POST /probing.Probe/Ask HTTP/1.1", "host: localhost", json, "content-length: 2"];
  const look = "GET /probing.Probe/Look?encoding=json&message=%7B%7D";

  it.each(["1", "2", "1.0", "v1", "1, 1"])("may only be 1: %s", async (version) => {
    const { port } = await start();
    const expected = version === "1" ? "200" : "400 HTTP_INVALID";
    expect(await send(port, [...post, `connect-protocol-version: ${version}`])).toBe(expected);
    const parameter = `&connect=v${encodeURIComponent(version)}`;
    expect(await send(port, [`${look}${parameter} HTTP/1.1`, "host: localhost"], "")).toBe(expected);
  });
});

describe("a host or an origin of 16 KB, which takes 20 ms to parse,", () => {
  // Names in any script may be percent-encoded in a URL.
  const long = encodeURIComponent(
    Array.from({ length: 1800 }, (_, i) => String.fromCodePoint(0x9fa5 - i)).join(""),
  );
  it.each([
    ["in Host", [ask, `host: ${long}`], "HTTP_INVALID", 0],
    ["in an absolute target", [`POST http://${long}/ HTTP/1.1`], "HTTP_INVALID", 0],
    ["in Origin", [ask, "host: localhost", `origin: https://${long}`], "CROSS_SITE_REFUSED", 1],
  ])("is refused without being parsed: %s", (_where, lines, reason, parsed) => {
    const parse = vi.spyOn(URL, "canParse");
    onTestFinished(() => parse.mockRestore());
    expect(faultOf(lines)).toBe(reason);
    expect(parse).toHaveBeenCalledTimes(parsed);
  });
});

/** A log with a test clock. */
function openLog() {
  const { lines, logger } = collectLines("warn");
  const clock = { nowMs: 1 };
  const log = createCrossSiteLog(logger, () => clock.nowMs);
  const refuse = (origin: string | undefined, times = 1): void => {
    for (let i = 0; i < times; i += 1) log.refused({ origin, requestId: "r-1" });
  };
  return { lines, clock, refuse, logger };
}

const minuteMs = 60_000;

describe("log lines about pages of other origins", () => {
  it("name the origin, the setting that allows it, and the request", () => {
    const { lines, refuse } = openLog();
    refuse("https://elsewhere.example");
    const reason = "CROSS_SITE_REFUSED";
    const msg = expect.stringContaining("--cors-origins");
    const expected = { level: 40, reason, origin: "https://elsewhere.example", requestId: "r-1", msg };
    expect(lines).toMatchObject([expected]);
  });

  it("appear once per origin in ten minutes, and the next one counts the refusals between", () => {
    const { lines, clock, refuse } = openLog();
    refuse("https://a.example", 5);
    clock.nowMs += 10 * minuteMs - 1;
    refuse("https://a.example", 2);
    expect(lines).toHaveLength(1);
    clock.nowMs += 1;
    refuse("https://a.example");
    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatchObject({ more: 6 });
  });

  it("are limited to twenty in ten minutes, however many origins an attacker invents", () => {
    const { lines, clock, refuse } = openLog();
    for (let i = 0; i < 10_000; i += 1) refuse(`https://${i}.example`);
    expect(lines).toHaveLength(20);
    clock.nowMs += 10 * minuteMs;
    refuse("https://real.example");
    expect(lines.slice(20)).toMatchObject([{ origin: "https://real.example", others: 9980 }]);
    refuse("https://next.example");
    expect(lines[21]).not.toHaveProperty("others");
  });

  const useless = [undefined, "null", "file://", "https://a.example/path", "https://*.example", "https://"];
  it.each(useless)("do not advise a setting that cannot help: %s", (origin) => {
    const { lines, refuse } = openLog();
    refuse(origin);
    expect(lines).toHaveLength(1);
    expect(lines[0]?.msg).not.toContain("--cors-origins");
  });

  it("truncate long values", () => {
    const { lines, refuse } = openLog();
    refuse(`https://${"a".repeat(8000)}.example`);
    expect(String(lines[0]?.origin).length).toBeLessThanOrEqual(100);
  });
});
// refusals.test.ts tests that each refusal is counted.
it("a server logs the request ID of a refusal, also of a preflight", async () => {
  const { logger, lines } = openLog();
  const { url } = await serveProbe({}, {}, { logger, corsOrigins: ["https://allowed.example"] });
  const session = connectHttp2(url);
  const origins = ["https://allowed.example", "https://a.example", "https://b.example", "https://b.example"];
  const ids: unknown[] = [];
  for (const origin of origins) {
    const preflight = {
      ":method": "OPTIONS",
      ":path": "/probe/ask",
      "access-control-request-method": "POST",
    };
    ids.push((await request(session, { ...preflight, origin })).headers["x-request-id"]);
  }
  const logged = lines.map(({ origin, requestId }) => [origin, requestId]);
  expect(logged).toEqual([1, 2].map((at) => [origins[at], ids[at]]));
});

import { describe, expect, it, onTestFinished, vi } from "vitest";
import { findReason } from "../../src/errors.ts";
import { createHeadCheck, createHostCheck } from "../../src/server/request-head.ts";
import { serveCounted } from "./probe.ts";
import {
  connectHttp2,
  connectTcp,
  envelope,
  exchangeBytes,
  jsonRefusalOf,
  readStream,
  request,
} from "./raw.ts";

const timeout = 180_000;
const allowed = "https://console.example.com";

/** Serves like a server without access control. */
const start = () => serveCounted({ isHostAllowed: createHostCheck([], "127.0.0.1"), corsOrigins: [allowed] });

/**
 * Sends an HTTP/1.1 request with exactly these lines.
 *
 * @returns status and reason
 */
async function send(port: number, lines: readonly string[], body = "{}"): Promise<string> {
  const text = [...lines, `content-length: ${body.length}`, "connection: close", "", body].join("\r\n");
  const answer = await exchangeBytes(port, text);
  const [, status = ""] = answer.split(" ");
  const [, json = ""] = answer.split("\r\n\r\n");
  return status === "200" ? status : `${status} ${jsonRefusalOf(json).reason}`;
}

const json = "content-type: application/json";
const ask = "POST /probe/ask HTTP/1.1";

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
    ["localhost", []],
    ["localhost:8080", []],
    ["LOCALHOST", []],
    ["localhost.", []],
    ["console.localhost:8080", []],
    ["127.0.0.1", []],
    ["127.0.0.53:8080", []],
    ["[::1]:8080", []],
    ["pqc.example.com", ["pqc.example.com"]],
    ["a.example.com", [".example.com"]],
    ["anything.example.org", ["*"]],
  ])("may be %s with --allowed-hosts %j", (host, allowedHosts) => {
    expect(faultOf([ask, `host: ${host}`, json], { allowedHosts })).toBeUndefined();
  });

  it.each([
    ["evil.example.com", []],
    ["localhost.evil.example.com", []],
    ["127.0.0.1.evil.example.com", []],
    ["10.0.0.1", []],
    ["[fe80::1]", []],
    ["0.0.0.0", []],
    ["example.com", [".example.com"]],
    ["evilexample.com", [".example.com"]],
  ])("is refused if it is %s with --allowed-hosts %j", (host, allowedHosts) => {
    expect(faultOf([ask, `host: ${host}`, json], { allowedHosts })).toBe("HOST_NOT_ALLOWED");
  });

  it.each([
    ["no Host", []],
    ["two Hosts", ["host: localhost", "host: evil.example.com"]],
    ["two Hosts that are alike", ["host: localhost", "Host: localhost"]],
    ["a Host with a path", ["host: localhost/evil"]],
    ["a Host with a user", ["host: evil@localhost"]],
    ["an empty Host", ["host: "]],
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
    const lines = [target, json, "content-length: 2", "connection: close", "", "{}"];
    expect(await exchangeBytes(port, lines.join("\r\n"))).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\n\{.+\}$/);
  });

  it("comes from :authority in HTTP/2, which Host may not contradict", async () => {
    const session = connectHttp2((await start()).url);
    const both = { ":authority": "localhost", host: "evil.example.com", ":path": "/livez" };
    expect(jsonRefusalOf((await request(session, both)).body).reason).toBe("HTTP_INVALID");
  });

  it("may be an IP address if the server is not limited to loopback, because a rebinding page needs a name", () => {
    const isAllowed = createHostCheck([], "0.0.0.0");
    expect(["192.0.2.1", "[2001:db8::1]", "localhost"].map((host) => isAllowed?.(host))).toEqual([
      true,
      true,
      true,
    ]);
    expect(isAllowed?.("evil.example.com")).toBe(false);
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
    expect(await send(port, [ask, "host: localhost"], "")).toBe("200");
    expect(
      (await request(connectHttp2(url), { ":path": "/probe/ask", "content-length": 0 }, "")).status,
    ).toBe(200);
  });
});

describe("the transfer coding of a request", { timeout }, () => {
  const sendChunks = async (port: number, lines: readonly string[]): Promise<string> => {
    const head = [ask, "host: localhost", json, ...lines, "connection: close"];
    const answer = await exchangeBytes(port, [...head, "", "2", "{}", "0", "", ""].join("\r\n"));
    return answer.slice("HTTP/1.1 ".length).slice(0, 3);
  };

  it.each(["chunked", "Chunked"])("may be %s", async (coding) => {
    const { port } = await start();
    expect(await sendChunks(port, [`transfer-encoding: ${coding}`])).toBe("200");
  });

  it.each([
    ["gzip, chunked", ["transfer-encoding: gzip, chunked"]],
    ["gzip and chunked in two headers", ["transfer-encoding: gzip", "transfer-encoding: chunked"]],
    ["deflate, chunked", ["transfer-encoding: deflate,chunked"]],
    ["chunked with a parameter", ["transfer-encoding: chunked;a=b, chunked"]],
  ])("is refused instead of being read as plaintext: %s", async (_what, lines) => {
    const { port, handled } = await start();
    expect(await sendChunks(port, lines)).toBe("501");
    expect(handled()).toBe(0);
  });

  // RFC 9112, section 6.3: the length of such a body is unknown.
  it.each([
    ["identity", 501],
    ["foo", 501],
    ["foo, identity", 501],
    // Node's parser refuses it.
    ["chunked, gzip", 400],
  ])(
    "is refused once and ends the connection if the last coding is not chunked: %s",
    async (coding, status) => {
      const { port, handled } = await start();
      const head = [ask, "host: localhost", json, `transfer-encoding: ${coding}`, "", ""].join("\r\n");
      const answer = await exchangeBytes(
        port,
        `${head}{}GET /probe/look HTTP/1.1\r\nhost: localhost\r\n\r\n`,
      );
      expect(answer.match(/^HTTP\/1\.1 \d+/gm)).toEqual([`HTTP/1.1 ${status}`]);
      expect(answer).toMatch(/^connection: close\r$/im);
      expect(handled()).toBe(0);
    },
  );
});

describe.each([
  ["REST", "/probe/ask", "application/json"],
  ["Connect", "/probing.Probe/Ask", "application/json"],
  ["gRPC-Web", "/probing.Probe/Ask", "application/grpc-web+proto"],
])("a %s request that expects 100 Continue", { timeout }, (name, path, type) => {
  const body = name === "gRPC-Web" ? envelope("") : Buffer.from("{}");
  /** Sends a head, reads the response, and sends the body only after 100 Continue. */
  const expectContinue = async (port: number, target: string, length = body.length): Promise<string[]> => {
    const socket = connectTcp(port);
    const fields = ["host: localhost", `content-type: ${type}`, "expect: 100-continue", "connection: close"];
    const head = [`POST ${target} HTTP/1.1`, ...fields, `content-length: ${length}`, "", ""];
    socket.write(head.join("\r\n"));
    let text = "";
    for await (const bytes of socket) {
      if (text === "" && String(bytes).startsWith("HTTP/1.1 100")) socket.write(body);
      text += bytes;
    }
    return text.match(/^HTTP\/1\.1 \d+|grpc-status: \d+/gm) ?? [];
  };
  const over2 = async (url: string, target: string, length: number) => {
    const headers = { ":method": "POST", ":path": target, "content-type": type, expect: "100-continue" };
    const stream = connectHttp2(url).request({ ...headers, "content-length": length });
    let wasContinued = false;
    stream.on("continue", () => {
      wasContinued = true;
      stream.end(body);
    });
    const answer = await readStream(stream);
    return { wasContinued, status: answer.status };
  };

  it("receives 100 Continue, and is answered", async () => {
    const { port, url } = await start();
    const continued = await expectContinue(port, path);
    expect(continued.slice(0, 2)).toEqual(["HTTP/1.1 100", "HTTP/1.1 200"]);
    expect(await over2(url, path, body.length)).toEqual({ wasContinued: true, status: 200 });
  });

  it("is refused at once if its length exceeds the limit of its call", async () => {
    const { port, url, handled } = await start();
    const refused = name === "gRPC-Web" ? 200 : 413;
    const [first] = await expectContinue(port, path, 99_999_999);
    expect(first).toBe(`HTTP/1.1 ${refused}`);
    expect(await over2(url, path, 99_999_999)).toEqual({ wasContinued: false, status: refused });
    expect(handled()).toBe(0);
  });

  it("is refused at once if its path is unknown", async () => {
    const { port, url } = await start();
    const refused = name === "gRPC-Web" ? 200 : 404;
    const [first] = await expectContinue(port, "/nothing");
    expect(first).toBe(`HTTP/1.1 ${refused}`);
    expect(await over2(url, "/nothing", body.length)).toEqual({ wasContinued: false, status: refused });
  });
});

describe("the Connect version", { timeout }, () => {
  it("may be 1 or absent", async () => {
    const { port } = await start();
    const call = ["POST /probing.Probe/Ask HTTP/1.1", "host: localhost", json];
    expect(await send(port, [...call, "connect-protocol-version: 1"])).toBe("200");
    expect(await send(port, call)).toBe("200");
    const look = "/probing.Probe/Look?encoding=json&message=%7B%7D";
    for (const version of ["&connect=v1", ""])
      expect(await send(port, [`GET ${look}${version} HTTP/1.1`, "host: localhost"], "")).toBe("200");
  });

  it.each(["2", "1.0", "v1", "1, 1"])("is refused if it differs: %s", async (version) => {
    const { port, handled } = await start();
    const call = ["POST /probing.Probe/Ask HTTP/1.1", "host: localhost", json];
    const expected = "400 HTTP_INVALID";
    expect(await send(port, [...call, `connect-protocol-version: ${version}`])).toBe(expected);
    const look = `/probing.Probe/Look?encoding=json&message=%7B%7D&connect=v${encodeURIComponent(version)}`;
    expect(await send(port, [`GET ${look} HTTP/1.1`, "host: localhost"], "")).toBe(expected);
    expect(handled()).toBe(0);
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

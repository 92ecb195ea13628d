import { randomBytes } from "node:crypto";
import { once } from "node:events";
import http2 from "node:http2";
import net from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { createMetrics, type Metrics } from "../../src/server/metrics.ts";
import { emptySettings, opening, preface, writeFrame } from "../support/http2-frames.ts";
import { createOutgoing } from "../support/streams.ts";
import { connectProbe, headOf, serveProbe } from "./probe.ts";
import {
  connectHttp2,
  connectTcp,
  envelope,
  exchangeBytes,
  jsonRefusalOf,
  readToEnd,
  request,
} from "./raw.ts";
import type { LocalServer } from "./serve.ts";

/**
 * How long the server waits for headers and bodies: longer than a busy machine keeps this process waiting.
 */
const limits = { maxHeaderMs: 20_000, maxReceiveMs: 20_000 };
/** The same, for tests that wait for the timeout. */
const hastyLimits = { maxHeaderMs: 400, maxReceiveMs: 400 };
let local: LocalServer;
let metrics: Metrics;
/** A well-behaved client whose calls continue throughout. */
let bystander: { stop(): Promise<number> };
beforeEach(async () => {
  metrics = createMetrics();
  local = await serveProbe({}, limits, { metrics });
  bystander = startBystander();
});
afterEach(async () => {
  // None of its calls failed, and there were some.
  expect(await bystander.stop()).toBeGreaterThan(2);
});

const serveHastily = (): Promise<LocalServer> => serveProbe({}, hastyLimits);

describe("a connection that sends", () => {
  it("garbage after a call gets the answer of the call, and no other", async () => {
    const body = '{"text":"x"}';
    const head = ["POST /probe/ask HTTP/1.1", "host: localhost", "content-type: application/json"];
    const call = [...head, `content-length: ${body.length}`, "", body].join("\r\n");
    const answer = await exchangeBytes(local.port, `${call}GARBAGE\r\n\r\n`);
    expect(answer.match(/^HTTP\/1\.1 \d+/gm)).toEqual(["HTTP/1.1 200"]);
  });

  it("garbage in many segments after a call waits for the call once", async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on("warning", note);
    onTestFinished(() => void process.off("warning", note));
    const release = Promise.withResolvers<object>();
    const { server, port } = await serveProbe({ look: () => release.promise }, limits);
    onTestFinished(() => server.destroy());
    const socket = connectTcp(port);
    socket.setNoDelay(true);
    socket.write("GET /probe/look HTTP/1.1\r\nhost: localhost\r\n\r\n");
    for (let count = 0; count < 30; count += 1) {
      socket.write("GARBAGE\r\n\r\n");
      await delay(1);
    }
    release.resolve({});
    expect((await readToEnd(socket)).match(/^HTTP\/1\.1 \d+/gm)).toEqual(["HTTP/1.1 200"]);
    expect(warnings).toEqual([]);
  });

  it.each(["", "P", "PR"])("%j and nothing more is closed after the header timeout", async (bytes) => {
    const socket = connectTcp((await serveHastily()).port);
    socket.write(bytes);
    expect(await readToEnd(socket)).toBe("");
  });

  it("the HTTP/2 preface byte by byte is served", async () => {
    const socket = connectTcp(local.port);
    socket.setNoDelay(true);
    for (const byte of opening) {
      socket.write(Buffer.of(byte));
      await delay(1);
    }
    const [chunk] = await once(socket, "data");
    // The server's first frame is SETTINGS.
    expect(chunk.readUInt8(3)).toBe(4);
  });

  it("half of its headers is answered with 408 after the header timeout", async () => {
    const socket = connectTcp((await serveHastily()).port);
    socket.write("GET /probe/look HTTP/1.1\r\nhost: x\r\nx-half: ");
    const answer = await readToEnd(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(refusalIn(answer).reason).toBe("REQUEST_TOO_SLOW");
  });

  it.each(["connection: close\r\n", ""])(
    "its body too slowly is answered with 408 after the body timeout, and closed, with %j",
    async (header) => {
      const socket = connectTcp((await serveHastily()).port);
      socket.write(post("/probe/ask", `content-length: 100000\r\n${header}\r\n`));
      const drip = setInterval(() => socket.write(" "), 5);
      const answer = await readToEnd(socket);
      clearInterval(drip);
      expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    },
  );

  it("the rest of its body after a refusal may send its next request", async () => {
    const socket = connectTcp(local.port);
    const body = '{"text":"a"}';
    socket.write(post("/probe/none", `content-length: ${body.length}\r\n\r\n`));
    await once(socket, "data");
    const answer = readToEnd(socket);
    socket.write(
      body + post("/probe/ask", `content-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`),
    );
    expect(await answer).toMatch(/^HTTP\/1\.1 200 /m);
  });

  it.each([
    ["random bytes", randomBytes(4096)],
    ["a TLS handshake", Buffer.from("1603010200010001fc0303", "hex")],
    ["no HTTP method", "HELLO\r\n\r\n"],
    ["an unknown version", "GET / HTTP/3.0\r\n\r\n"],
    [
      "two lengths",
      "POST /probe/ask HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}",
    ],
    ["a length and chunks", post("/probe/ask", "content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}")],
    ["a bad chunk", post("/probe/ask", "transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n")],
    ["a bare line feed in a header", "GET /probe/look HTTP/1.1\nhost: x\nx:\n\n\r\n\r\n"],
  ])("%s is answered with 400, in the one error body, counted, and closed", async (_what, bytes) => {
    const socket = connectTcp(local.port);
    socket.write(bytes);
    const answer = await readToEnd(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(refusalIn(answer)).toEqual({ code: "INVALID_ARGUMENT", reason: "HTTP_INVALID" });
    expect((await metrics.expose()).text).toContain('qsp_requests_refused_total{reason="HTTP_INVALID"} 1\n');
  });

  it.each([
    ["PRI and then nonsense", "PRI * HTTP/2.0\r\n\r\nnonsense, and more of it\r\n\r\n"],
    ["PRI as a method", "PRI / HTTP/1.1\r\nhost: x\r\n\r\n"],
    ["HTTP/2 without SETTINGS", Buffer.concat([preface, writeFrame(0, 0, 1, Buffer.from("x"))])],
    ["a frame larger than allowed", Buffer.concat([opening, writeFrame(0, 0, 1, Buffer.alloc(20_000))])],
    ["a frame of a stream that is not open", Buffer.concat([opening, writeFrame(0, 0, 7, Buffer.from("x"))])],
    ["headers that are not HPACK", Buffer.concat([opening, writeFrame(1, 5, 1, Buffer.alloc(50, 0xff))])],
    ["SETTINGS of 5 bytes", Buffer.concat([preface, writeFrame(4, 0, 0, Buffer.alloc(5))])],
    ["WINDOW_UPDATE of nothing", Buffer.concat([opening, writeFrame(8, 0, 0, Buffer.alloc(4))])],
    ["random frames", Buffer.concat([opening, randomBytes(4096)])],
  ])("%s is closed", async (_what, bytes) => {
    const socket = connectTcp(local.port);
    socket.write(bytes);
    expect(await readToEnd(socket)).not.toMatch(/^HTTP\/1\.1 2/);
  });
});

describe("an HTTP/2 call that", () => {
  it("is a stream may pause longer than that between two messages", async () => {
    const items = createOutgoing<{ text: string }>();
    const { url } = await serveHastily();
    const call = connectProbe("gRPC", url).collect(items);
    items.send({ text: "a" });
    await delay(2 * hastyLimits.maxReceiveMs);
    items.send({ text: "b" });
    items.end();
    expect((await call).text).toBe("ab");
  });

  it("is reset while running reports the end, and the connection keeps working", async () => {
    const session = connectHttp2(local.url);
    for (let count = 0; count < 50; count++) {
      const stream = session.request(headOf("Chat"));
      stream.on("error", () => {});
      stream.write(envelope(""));
      stream.close(http2.constants.NGHTTP2_CANCEL);
      await once(stream, "close");
    }
    expect((await request(session, { ":path": "/probe/look" })).status).toBe(200);
  });
});

describe("a flood of", () => {
  it("streams that are reset at once", async () => {
    const session = connectHttp2(local.url);
    await once(session, "remoteSettings");
    const streams = [];
    for (let count = 0; count < 5000 && !session.destroyed; count++) {
      const stream = session.request(headOf("Ask"));
      stream.on("error", () => {});
      stream.close(http2.constants.NGHTTP2_CANCEL);
      streams.push(new Promise((resolve) => stream.on("close", resolve)));
      if (count % 500 === 0) await delay(1);
    }
    await Promise.all(streams);
    await expectServed();
  });

  it("PING frames", async () => {
    const socket = connectTcp(local.port);
    socket.write(opening);
    const ping = writeFrame(6, 0, 0, Buffer.alloc(8));
    socket.write(Buffer.concat(Array(20_000).fill(ping)));
    socket.resume();
    await expectServed();
  });

  it("SETTINGS frames", async () => {
    const socket = connectTcp(local.port);
    socket.write(Buffer.concat([preface, ...Array(20_000).fill(emptySettings)]));
    socket.resume();
    await expectServed();
  });

  it("connections", async () => {
    const sockets = Array.from({ length: 300 }, () => connectTcp(local.port));
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    await expectServed();
  });

  it("connections that are reset", async () => {
    for (let count = 0; count < 300; count++) {
      const socket = net.connect(local.port, "127.0.0.1");
      socket.on("error", () => {});
      await once(socket, "connect");
      socket.write(count % 2 === 0 ? post("/probe/ask", "content-length: 5\r\n\r\n{") : preface);
      socket.resetAndDestroy();
    }
    await expectServed();
  });
});

describe.each([
  ["gRPC", "POST", "/probing.Probe/Watch", "application/grpc"],
  ["gRPC-Web", "POST", "/probing.Probe/Watch", "application/grpc-web+proto"],
  ["Connect", "POST", "/probing.Probe/Watch", "application/connect+proto"],
  ["REST", "GET", "/probe/watch", undefined],
])("a client of %s that reads nothing", (_name, method, path, type) => {
  it("receives no more than its window, and its handler ends when it disconnects", async () => {
    let made = 0;
    const ended = Promise.withResolvers<void>();
    const { url } = await serveProbe({
      async *watch() {
        try {
          for (; made < 1000; made++) yield { data: new Uint8Array(1024 * 1024) };
        } finally {
          ended.resolve();
        }
      },
    });
    const headers = { ":method": method, ":path": path, ...(type && { "content-type": type }) };
    const stream = connectHttp2(url).request(headers);
    stream.end(type && envelope(""));
    await once(stream, "response");
    await delay(100);
    expect(made).toBeLessThan(20);
    stream.close(http2.constants.NGHTTP2_CANCEL);
    await ended.promise;
  });
});

async function expectServed(): Promise<void> {
  expect((await fetch(`${local.url}/probe/look?text=a`)).status).toBe(200);
  expect(await connectProbe("gRPC", local.url).ask({ text: "b" })).toMatchObject({ text: "b" });
}

/** Makes call after call on its own connection; throws the error of a failed call at the end. */
function startBystander(): { stop(): Promise<number> } {
  const client = connectProbe("gRPC", local.url);
  let isStopped = false;
  const run = async () => {
    let count = 0;
    for (; !isStopped || count < 3; count++) {
      expect(await client.ask({ text: "still here" })).toMatchObject({
        text: "still here",
      });
      await delay(5);
    }
    return count;
  };
  const running = run();
  running.catch(() => {}); // Thrown by stop.
  return {
    stop: () => {
      isStopped = true;
      return running;
    },
  };
}

function post(path: string, rest: string): string {
  return `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${rest}`;
}

function refusalIn(answer: string) {
  return jsonRefusalOf(answer.slice(answer.indexOf("\r\n\r\n") + 4));
}

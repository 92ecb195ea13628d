import { randomBytes } from "node:crypto";
import { once } from "node:events";
import http2 from "node:http2";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { createMetrics, type Metrics } from "../../src/server/metrics.ts";
import { emptySettings, opening, preface, writeFrame } from "../support/http2-frames.ts";
import { createOutgoing } from "../support/streams.ts";
import { connectProbe, headOf, serveProbe } from "./probe.ts";
import { connectHttp2, connectTcp, envelope, exchangeBytes, jsonRefusalOf, readToEnd } from "./raw.ts";
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
const post = (rest: string): string =>
  `POST /probe/ask HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${rest}`;

describe("a connection that sends", () => {
  it.each([0, 30])("garbage %d segments after a call gets only the answer of the call", async (segments) => {
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on("warning", note);
    onTestFinished(() => void process.off("warning", note));
    const release = Promise.withResolvers<object>();
    const { port } = await serveProbe({ look: () => release.promise }, limits);
    const socket = connectTcp(port);
    const garbage = "GARBAGE\r\n\r\n";
    socket.write(`GET /probe/look HTTP/1.1\r\nhost: localhost\r\n\r\n${segments === 0 ? garbage : ""}`);
    for (let count = 0; count < segments; count += 1) {
      socket.write(garbage);
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
    for (const byte of opening) {
      socket.write(Buffer.of(byte));
      await delay(1);
    }
    const [chunk] = await once(socket, "data");
    // The server's first frame is SETTINGS.
    expect(chunk.readUInt8(3)).toBe(4);
  });

  it("half of its headers is answered with 408 after the header timeout", async () => {
    const answer = await exchangeBytes(
      (await serveHastily()).port,
      "GET /probe/look HTTP/1.1\r\nhost: x\r\nx-half: ",
    );
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(refusalIn(answer).reason).toBe("REQUEST_TOO_SLOW");
  });

  it("its body byte by byte is answered with 408 after the body timeout, and closed", async () => {
    const socket = connectTcp((await serveHastily()).port);
    socket.write(post("content-length: 100000\r\n\r\n"));
    const drip = setInterval(() => socket.write(" "), 5);
    const answer = await readToEnd(socket);
    clearInterval(drip);
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
  });

  it.each([
    ["random bytes", randomBytes(4096)],
    ["a TLS handshake", Buffer.from("1603010200010001fc0303", "hex")],
    ["no HTTP method", "HELLO\r\n\r\n"],
    ["an unknown version", "GET / HTTP/3.0\r\n\r\n"],
    ["no host", "GET / HTTP/1.1\r\nconnection: close\r\n\r\n"],
    ["a header that is none", "GET / HTTP/1.1\r\nhost: x\r\nno header\r\n\r\n"],
    ["two lengths", post("content-length: 1\r\ncontent-length: 2\r\n\r\n{}")],
    ["a length and chunks", post("content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}")],
    ["a bad chunk", post("transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n")],
    ["a bare line feed in a header", "GET /probe/look HTTP/1.1\nhost: x\nx:\n\n\r\n\r\n"],
  ])("%s is answered with 400, in the one error body, counted, and closed", async (_what, bytes) => {
    const answer = await exchangeBytes(local.port, bytes);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(refusalIn(answer)).toEqual({ code: "INVALID_ARGUMENT", reason: "HTTP_INVALID" });
    expect((await metrics.expose()).text).toContain('qsp_requests_refused_total{reason="HTTP_INVALID"} 1\n');
    // For browsers; and it does not reveal the server software.
    expect(answer).toMatch(/\r\nx-content-type-options: nosniff\r\n/i);
    expect(answer).not.toMatch(/^(server|via|x-powered-by):/im);
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
    expect(await exchangeBytes(local.port, bytes)).not.toMatch(/^HTTP\/1\.1 2/);
  });
});

it("an HTTP/2 stream may pause longer than the body timeout between two messages", async () => {
  const items = createOutgoing<{ text: string }>();
  const { url } = await serveHastily();
  const call = connectProbe("gRPC", url).collect(items);
  items.send({ text: "a" });
  await delay(2 * hastyLimits.maxReceiveMs);
  items.send({ text: "b" });
  items.end();
  expect((await call).text).toBe("ab");
});

// floods.test.ts has the flood of streams that are reset.
it.each([
  ["PING", writeFrame(6, 0, 0, Buffer.alloc(8))],
  ["SETTINGS", emptySettings],
])("a flood of %s frames affects nobody else", async (_type, frame) => {
  const socket = connectTcp(local.port);
  socket.write(Buffer.concat([opening, ...Array(20_000).fill(frame)]));
  socket.resume();
  expect((await fetch(`${local.url}/probe/look?text=a`)).status).toBe(200);
  expect(await connectProbe("gRPC", local.url).ask({ text: "b" })).toMatchObject({ text: "b" });
});

it.each([
  ["gRPC", headOf("Watch")],
  ["gRPC-Web", headOf("Watch", "application/grpc-web+proto")],
  ["Connect", headOf("Watch", "application/connect+proto")],
  ["REST", { ":path": "/probe/watch" }],
])("a client of %s that reads nothing pauses its handler, which ends when it leaves", async (_, head) => {
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
  const stream = connectHttp2(url).request(head);
  stream.end(":method" in head ? envelope("") : undefined);
  await once(stream, "response");
  await delay(100);
  expect(made).toBeLessThan(20);
  stream.close(http2.constants.NGHTTP2_CANCEL);
  await ended.promise;
});

/** Makes call after call on its own connection; throws the error of a failed call at the end. */
function startBystander(): { stop(): Promise<number> } {
  const client = connectProbe("gRPC", local.url);
  let isStopped = false;
  const run = async () => {
    let count = 0;
    for (; !isStopped || count < 3; count++) {
      expect(await client.ask({ text: "still here" })).toMatchObject({ text: "still here" });
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

function refusalIn(answer: string) {
  return jsonRefusalOf(answer.slice(answer.indexOf("\r\n\r\n") + 4));
}

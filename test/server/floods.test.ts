/** What costs a client next to nothing, and the server a lot. */
import { once } from "node:events";
import http2 from "node:http2";
import type net from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { refuse, refuseForNow } from "../../src/errors.ts";
import { createAnswerPace } from "../../src/server/answer-pace.ts";
import { createMetrics } from "../../src/server/metrics.ts";
import { flags, frameTypes, opening, writeFrame, writeUint32 } from "../support/http2-frames.ts";
import { encodeHead } from "./frames.ts";
import { headOf, serveProbe } from "./probe.ts";
import {
  connectHttp2,
  connectTcp,
  envelope,
  exchangeBytes,
  grpcStatusOf,
  readStream,
  readToEnd,
  request,
} from "./raw.ts";
import { requestHttp1, shakeHands, startTlsServer } from "./tls-clients.ts";

const me = (): string => "me";
const attacker = (): string => "attacker";

describe("the pace of answers outside calls", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "setImmediate", "performance"] }));
  afterEach(() => void vi.useRealTimers());

  /**
   * Sends answers of 1 ms each to one client.
   *
   * @returns how many were sent and how many are waiting
   */
  function flood(count: number) {
    const pace = createAnswerPace();
    let sent = 0;
    let taken = 0;
    const send = (): void => {
      sent += 1;
    };
    for (let i = 0; i < count; i += 1) if (pace.send({ costMs: 1, client: attacker, send })) taken += 1;
    return { pace, taken, countSent: () => sent };
  }

  it("sends a single answer at once", () => {
    expect(flood(1).countSent()).toBe(1);
  });

  it("spends a fifth of the time on them", async () => {
    const { pace, countSent } = flood(1000);
    await vi.advanceTimersByTimeAsync(1000);
    expect(countSent()).toBeGreaterThan(195);
    expect(countSent()).toBeLessThanOrEqual(206);
    await vi.advanceTimersByTimeAsync(4100);
    expect([countSent(), pace.waiting]).toEqual([1000, 0]);
  });

  it("sends them in small rounds, however late the event loop is", async () => {
    const { countSent } = flood(1000);
    expect(countSent()).toBe(5);
    await vi.advanceTimersToNextTimerAsync();
    expect(countSent()).toBeLessThanOrEqual(10);
  });

  it("alternates between clients, however many answers one of them awaits", async () => {
    const { pace, countSent } = flood(1000);
    const onSent = vi.fn();
    pace.send({ costMs: 1, client: me, send: onSent });
    const before = countSent();
    await vi.advanceTimersByTimeAsync(10);
    expect(onSent).toHaveBeenCalledOnce();
    expect(countSent() - before).toBeLessThanOrEqual(6);
  });

  it("spends no time on disconnected clients", async () => {
    const { pace } = flood(5);
    const onSent = vi.fn();
    for (let i = 0; i < 1000; i += 1)
      pace.send({ costMs: 1, client: attacker, isGone: () => true, send: () => {} });
    pace.send({ costMs: 1, client: attacker, send: onSent });
    await vi.advanceTimersByTimeAsync(10);
    expect([onSent.mock.calls.length, pace.waiting]).toEqual([1, 0]);
  });

  it("has no backlog after a pause", async () => {
    const { pace, countSent } = flood(100);
    await vi.advanceTimersByTimeAsync(10_000);
    pace.send({ costMs: 1, client: attacker, send: () => {} });
    await vi.advanceTimersByTimeAsync(0);
    expect([countSent(), pace.waiting]).toEqual([100, 0]);
  });

  it("refuses more than it can hold, and leaves room for the answers of other clients", () => {
    const { pace, taken } = flood(20_000);
    expect([taken, pace.waiting]).toEqual([8005, 8000]);
    expect(pace.send({ costMs: 1, client: me, send: () => {} })).toBe(true);
    for (let i = 0; i < 20_000; i += 1) pace.send({ costMs: 1, client: () => `client ${i}`, send: () => {} });
    expect(pace.waiting).toBe(10_000);
  });

  it("delays retryable refusals of calls, and no other errors", async () => {
    const { pace } = flood(100);
    expect(pace.waitIfBusy(refuse("KEY_NOT_FOUND", "no key"), me)).toBeUndefined();
    expect(pace.waitIfBusy(refuse("QUOTA_EXCEEDED", "too many"), me)).toBeUndefined();
    const onSent = vi.fn();
    void pace.waitIfBusy(refuseForNow("SERVER_BUSY", "busy", 1000), attacker)?.then(onSent);
    await vi.advanceTimersByTimeAsync(400);
    expect(onSent).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(150);
    expect(onSent).toHaveBeenCalledOnce();
  });
});

const floods = {
  "paths that do not exist": { ":path": "/nope" },
  "methods that a path does not take": { ":path": "/livez", ":method": "DELETE" },
  "RPCs that do not exist": { ":path": "/a.b/C", ":method": "POST", "content-type": "application/grpc" },
  "requests of other sites": { ":path": "/probe/look", origin: "http://evil.example" },
  pages: { ":path": "/livez" },
};

it.each(Object.entries(floods))("do not delay a call that arrives after them: %s", async (_what, head) => {
  const { url } = await serveProbe({ look: () => ({}) });
  const session = connectHttp2(url);
  const order: string[] = [];
  // All in one segment. Without pacing, they would be answered in order.
  const flood = Array.from({ length: 300 }, () => request(session, head).then(() => order.push("flood")));
  const call = request(session, { ":path": "/probe/look" }).then(({ headers }) => {
    expect(headers[":status"]).toBe(200);
    order.push("call");
  });
  await Promise.all([...flood, call]);
  expect(order.indexOf("call")).toBeLessThan(150);
});

/** Counts the calls that reach the handler. */
async function startCounting() {
  let calls = 0;
  const { port } = await serveProbe({
    look: async ({ text }) => {
      calls += 1;
      return { text };
    },
  });
  return { port, countCalls: () => calls };
}

const get = "GET /probe/look?text=x HTTP/1.1\r\nhost: localhost\r\n\r\n";

describe("an HTTP/1.1 pipeline", () => {
  it("is answered up to 100 requests, and ends with the last answer", async () => {
    const { port, countCalls } = await startCounting();
    const text = await exchangeBytes(port, get.repeat(300));
    const answers = text.split("HTTP/1.1 200").slice(1);
    expect([answers.length, countCalls()]).toEqual([100, 100]);
    expect(answers.filter((answer) => /^connection: close/im.test(answer))).toEqual([answers.at(-1)]);
  });

  it("continues indefinitely if its client reads the answers", async () => {
    const { port } = await startCounting();
    const socket = connectTcp(port);
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk;
    });
    for (let sent = 50; sent <= 300; sent += 50) {
      socket.write(get.repeat(50));
      await expect.poll(() => text.split("HTTP/1.1 200").length - 1).toBe(sent);
    }
    socket.end();
  });

  const upgrade = (protocol: string): string =>
    `host: localhost\r\nconnection: upgrade\r\nupgrade: ${protocol}`;
  const postHead = "POST /probe/ask HTTP/1.1\r\ncontent-type: application/json\r\n";
  it.each([
    ["a GET", `GET /probe/look HTTP/1.1\r\n${upgrade("x")}\r\n\r\n`],
    ["a WebSocket", `GET /probe/look HTTP/1.1\r\n${upgrade("websocket")}\r\n\r\n`],
    [
      "HTTP/2",
      "GET /probe/look HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade, HTTP2-Settings\r\n" +
        "upgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n\r\n",
    ],
    ["a body", `${postHead}${upgrade("x")}\r\ncontent-length: 2\r\n\r\n{}`],
    ["chunks", `${postHead}${upgrade("x")}\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`],
  ])("ends with the answer to an upgrade request: %s", async (_what, text) => {
    const { port, countCalls } = await startCounting();
    for (const before of ["", get]) {
      const earlier = before === "" ? 0 : 1;
      const calls = countCalls();
      const answers = (await exchangeBytes(port, before + text + get + get)).split("HTTP/1.1 ").slice(1);
      expect(answers.map((answer) => answer.slice(0, 3))).toEqual(Array(earlier + 1).fill("200"));
      expect(answers.filter((answer) => /^connection: close/im.test(answer))).toEqual([answers.at(-1)]);
      expect(countCalls() - calls).toBe(earlier + (text.startsWith("GET") ? 1 : 0));
    }
  });

  it("ignores what follows an upgrade request in another segment", async () => {
    const release = Promise.withResolvers<object>();
    let calls = 0;
    const { port } = await serveProbe({
      look: () => {
        calls += 1;
        return release.promise;
      },
    });
    const socket = connectTcp(port);
    const text = readToEnd(socket);
    socket.write(`GET /probe/look HTTP/1.1\r\n${upgrade("x")}\r\n\r\n`);
    await expect.poll(() => calls).toBe(1);
    socket.write(get.repeat(2));
    expect((await fetch(`http://127.0.0.1:${port}/livez`)).status).toBe(200);
    release.resolve({});
    expect((await text).match(/^HTTP\/1\.1 \d+/gm)).toEqual(["HTTP/1.1 200"]);
    expect(calls).toBe(1);
  });

  it("does not end a server whose TLS connection it pauses", { timeout: 180_000 }, async () => {
    const server = await startTlsServer();
    const body = "content-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    for (let i = 0; i < 3; i += 1) {
      const socket = await shakeHands(server, { ALPNProtocols: ["http/1.1"] });
      socket.write(`POST /api/auth/token HTTP/1.1\r\nhost: localhost\r\n${body}`.repeat(1500));
      const text = await readToEnd(socket);
      // Each lacks a username. The end of a connection can reach a client that is still sending before the
      // answers do.
      expect(text.split("HTTP/1.1 400").length).toBeLessThanOrEqual(101);
    }
    expect((await requestHttp1(server, "/livez")).status).toBe(200);
  });
});

it("HTTP/2 streams that their client resets at once end the connection after about 200", async () => {
  const { port, countCalls } = await startCounting();
  const fields = { ":method": "GET", ":path": "/probe/look?text=x", "content-type": undefined };
  const streams = Array.from({ length: 2000 }, (_, i) => [
    encodeHead(2 * i + 1, fields, flags.endStream),
    writeFrame(frameTypes.rstStream, 0, 2 * i + 1, writeUint32(8)),
  ]);
  const socket = connectTcp(port);
  socket.write(Buffer.concat([opening, ...streams.flat()]));
  socket.resume();
  await once(socket, "close");
  expect(countCalls()).toBeLessThan(400);
});

const messages = (type: string, count: number): Buffer =>
  Buffer.concat(Array<Buffer>(count).fill(envelope(type.endsWith("json") ? "{}" : "")));

describe.each([
  "application/grpc",
  "application/grpc+json",
  "application/grpc-web+proto",
  "application/connect+json",
])("a stream of many small messages of %s", (type) => {
  const open = async (sent: number, answerBytes: number) => {
    let read = 0;
    const { url } = await serveProbe({
      async *chat(items) {
        for await (const _item of items) {
          read += 1;
          yield { data: new Uint8Array(answerBytes) };
        }
      },
    });
    const stream = connectHttp2(url).request(headOf("Chat", type));
    stream.write(messages(type, sent));
    return { url, stream, countRead: () => read };
  };

  it("leaves turns to other callers", async () => {
    const sent = 1000;
    const { url, stream, countRead } = await open(sent, 0);
    const other = connectHttp2(url);
    await once(stream, "response");
    expect((await request(other, { ":path": "/probe/look" })).status).toBe(200);
    expect(countRead()).toBeLessThan(sent);
    stream.resume();
    await expect.poll(countRead).toBe(sent);
  });

  it("is read no further than its answers are", async () => {
    const sent = 200;
    const { url, stream, countRead } = await open(sent, 64 * 1024);
    await once(stream, "response");
    const other = connectHttp2(url);
    for (let calls = 0; calls < 50; calls += 1)
      expect((await request(other, { ":path": "/probe/look" })).status).toBe(200);
    expect(countRead()).toBeLessThan(50);
    stream.resume();
    await expect.poll(countRead).toBe(sent);
  });
});

/** A short limit, so that a test ends only if the server does not wait for the rest of a request. */
const limits = { maxWriteMs: 100, maxReceiveMs: 60_000 };
const requests: Record<string, http2.OutgoingHttpHeaders> = {
  "a page": { ":path": "/livez" },
  "a path that does not exist": { ":path": "/nope" },
  "a call over gRPC": headOf("Ask"),
  "a media type that does not exist": headOf("Ask", "text/x"),
  "a host that is not allowed": { ":path": "/nope", host: "one", ":authority": "other" },
};

it.each(Object.entries(requests))("an unread HTTP/2 answer is reset: to %s", async (_what, headers) => {
  const { url } = await serveProbe({}, limits);
  const session = connectHttp2(url, { settings: { initialWindowSize: 0 } });
  const stream = session.request(headers, { endStream: false });
  stream.on("error", () => {});
  stream.end(headers[":method"] === "POST" ? envelope("") : undefined);
  await new Promise((resolve) => stream.on("close", resolve));
  expect(stream.rstCode).not.toBe(http2.constants.NGHTTP2_NO_ERROR);
});

it("a HEAD request that its client does not end is ended", async () => {
  const { url } = await serveProbe({}, limits);
  const stream = connectHttp2(url).request({ ":method": "HEAD", ":path": "/livez" }, { endStream: false });
  const [headers] = await once(stream, "response");
  await once(stream.resume(), "close");
  expect([headers[":status"], stream.rstCode]).toEqual([200, http2.constants.NGHTTP2_NO_ERROR]);
});

it("a second message of a unary call is refused on arrival", async () => {
  const { url } = await serveProbe({}, limits);
  const stream = connectHttp2(url).request(headOf("Ask"), { endStream: false });
  stream.write(Buffer.concat([envelope(""), envelope("")]));
  expect(grpcStatusOf(await readStream(stream)).status).toBe(12);
});

describe("one-byte chunks over HTTP/1.1", () => {
  const open = async (path: string): Promise<net.Socket> => {
    const { port } = await serveProbe({}, limits);
    const socket = connectTcp(port);
    const head = ["host: localhost", "content-type: application/json", "transfer-encoding: chunked"];
    socket.write(`POST ${path} HTTP/1.1\r\n${head.join("\r\n")}\r\n\r\n`);
    return socket;
  };
  const chunks = Buffer.from("1\r\n \r\n".repeat(20_000));

  it("are not read for long after the request is refused", async () => {
    const socket = await open("/nope");
    const text = readToEnd(socket);
    await once(socket, "data");
    // The server stops reading, so the client cannot write all of them.
    let written = 0;
    const goOn = (): void => {
      while (!socket.destroyed && socket.write(chunks)) written += chunks.length;
    };
    socket.on("drain", goOn);
    goOn();
    expect(await text).toMatch(/^HTTP\/1\.1 404 /);
    expect(written).toBeLessThan(100 * 1024 * 1024);
  });

  it("are refused if there are more than a client needs", async () => {
    const socket = await open("/probing.Probe/Ask");
    socket.write(chunks);
    const [data] = await once(socket, "data");
    expect(String(data)).toMatch(/^HTTP\/1\.1 400 (.|\s)*larger chunks/);
  });
});

describe("a client that does not wait for its answers", () => {
  // One connection and ten requests.
  const rate = { maxConnectionsPerSecond: 1 };
  const never = { ask: () => new Promise<never>(() => {}) };
  const connect = (url: string): net.Socket => connectTcp(Number(new URL(url).port), false, "127.0.0.2");
  const connectSession = (url: string): http2.ClientHttp2Session =>
    connectHttp2(url, { createConnection: () => connect(url) });

  it("loses its HTTP/2 connection", async () => {
    const { url } = await serveProbe(never, rate);
    const session = connectSession(url);
    const ended = once(session, "goaway");
    for (let at = 0; at < 30; at += 1) {
      const stream = session.request(headOf("Ask", "application/json"));
      stream.on("error", () => {});
      stream.close(http2.constants.NGHTTP2_CANCEL);
    }
    expect((await ended)[0]).toBe(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM);
  });

  it("is counted by its address, even if its resets end its connection", async () => {
    const metrics = createMetrics();
    const { url } = await serveProbe(never, rate, { metrics });
    const left = connect(url);
    const cancel = writeUint32(http2.constants.NGHTTP2_CANCEL);
    const requests = Array.from({ length: 500 }, (_, at) =>
      Buffer.concat([
        encodeHead(1 + 2 * at, { ":path": "/probing.Probe/Ask" }),
        writeFrame(frameTypes.rstStream, 0, 1 + 2 * at, cancel),
      ]),
    );
    left.write(Buffer.concat([opening, ...requests]));
    await expect
      .poll(async () => (await metrics.expose()).text)
      .toMatch(/qsp_connections_refused_total\{limit="rate"\} 1\n/);
    expect(await readToEnd(connect(url))).toBe("");
  });

  it("may end streams whose answers have begun", async () => {
    const { url } = await serveProbe({}, rate);
    const session = connectSession(url);
    for (let at = 0; at < 30; at += 1) {
      const stream = session.request({ ":path": "/livez" });
      await once(stream, "response");
      stream.close(http2.constants.NGHTTP2_CANCEL);
    }
    expect(session.destroyed).toBe(false);
  });

  it("loses its next connections if it abandons HTTP/1.1 connections", async () => {
    const { url } = await serveProbe(never, rate);
    const head = "host: localhost\r\ncontent-type: application/json\r\ncontent-length: 2";
    const socket = connect(url);
    socket.write(`POST /probing.Probe/Ask HTTP/1.1\r\n${head}\r\n\r\n{}`.repeat(20));
    await expect.poll(() => socket.bytesWritten).toBeGreaterThan(0);
    socket.end("no request\r\n\r\n");
    await once(socket, "close");
    expect(await readToEnd(connect(url))).toBe("");
  });
});

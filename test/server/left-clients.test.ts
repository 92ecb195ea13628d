/**
 * Callers who disconnect at the worst moment, fall silent, or send only a part of a request: no call starts that nothing
 * would end, no handler takes the part for the whole, and nobody else is affected.
 */
import { once } from "node:events";
import http2 from "node:http2";
import type net from "node:net";
import { setImmediate, setTimeout } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { Clients } from "../../src/server/clients.ts";
import type { Exchange } from "../../src/server/exchange.ts";
import { createListener } from "../../src/server/listener.ts";
import { createUnreadResponses } from "../../src/server/unread-responses.ts";
import { ItemSchema } from "../gen/probing/probe_pb.ts";
import { collectUncaught } from "../support/collect-uncaught.ts";
import { flags, frameTypes, opening, writeFrame, writeUint32 } from "../support/http2-frames.ts";
import { createFrameDecoder, encodeCall, encodeHead } from "./frames.ts";
import { ada, headOf, makeWatches, type ProbeBehaviour, serveAdmitting, serveProbe } from "./probe.ts";
import { connectHttp2, connectTcp, envelope, readStream, readToEnd } from "./raw.ts";

/** Serves watches. The test decides when a token has been checked. */
async function startWatched() {
  const checking = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const { behaviour, ...watches } = makeWatches();
  /** How often the server checked whether stream callers still have access. */
  let checks = 0;
  const check = async (): Promise<void> => {
    checks += 1;
  };
  const { port, url } = await serveAdmitting(behaviour, async (authorization) => {
    if (authorization === "slowly") {
      checking.resolve();
      await release.promise;
    }
    return { ...ada, revocation: { group: "ada", check } };
  });
  return {
    ...{ port, url, ...watches, checking: checking.promise, release: release.resolve },
    /** With nobody to watch, the server does not poll: in two poll intervals, it checks nothing. */
    async expectNobodyWatched() {
      const before = checks;
      await setTimeout(1200);
      expect(checks).toBe(before);
    },
  };
}
type Head = Readonly<Record<string, string>>;
const types = ["application/grpc", "application/connect+proto", "application/grpc-web+proto"] as const;
const rpcs = types.map((type): [string, Head] => [type, headOf("Watch", type)]);
const forms: [string, Head][] = [["REST", { ":method": "GET", ":path": "/probe/watch" }], ...rpcs];
function open(session: http2.ClientHttp2Session, head: Head, extra: Head = {}): http2.ClientHttp2Stream {
  const stream = session.request({ ...head, ...extra }, { endStream: false });
  stream.on("error", () => {});
  return stream.end(head[":method"] === "POST" ? envelope("") : undefined);
}
/** Expects that a later call is the only one running, and that the server watches no caller once it has ended. */
async function expectOnlyLater(watched: Awaited<ReturnType<typeof startWatched>>): Promise<void> {
  const later = open(connectHttp2(watched.url), headOf("Watch"));
  await expect.poll(() => watched.begun.filter(({ aborted }) => !aborted)).toHaveLength(1);
  await expect.poll(watched.countRunning).toBe(1);
  later.close(http2.constants.NGHTTP2_CANCEL);
  await expect.poll(watched.countRunning).toBe(0);
  await watched.expectNobodyWatched();
}
describe("a caller who disconnects while the token is checked", () => {
  it.each(forms)("leaves no call behind over HTTP/2: %s", async (_form, head) => {
    const watched = await startWatched();
    const session = connectHttp2(watched.url);
    const stream = open(session, head, { authorization: "slowly" });
    await watched.checking;
    stream.close(http2.constants.NGHTTP2_CANCEL);
    await once(stream, "close");
    // Once it has answered a later ping on the same connection, the server has read the reset.
    await new Promise<void>((resolve) => void session.ping(() => resolve()));
    watched.release();
    await expectOnlyLater(watched);
  });

  const formsOver1 = forms.filter(([name]) => name !== "application/grpc");
  it.each(formsOver1)("leaves no call behind over HTTP/1.1: %s", async (_form, head) => {
    const { ":method": method, ":path": path, "content-type": type } = head;
    const watched = await startWatched();
    const socket = connectTcp(watched.port);
    const body = type === undefined ? "" : "\0".repeat(5);
    const fields = ["host: localhost", "authorization: slowly", `content-length: ${body.length}`];
    if (type !== undefined) fields.push(`content-type: ${type}`);
    socket.write(`${method} ${path} HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n${body}`);
    await watched.checking;
    socket.resetAndDestroy();
    // A later connection has been served, so the server has seen the end of the earlier one.
    await (await fetch(`${watched.url}/livez`)).text();
    watched.release();
    await expectOnlyLater(watched);
  });
});
describe("a stream whose deadline has passed before it begins", () => {
  it.each(rpcs)("leaves nobody to watch: %s", async (_type, head) => {
    const watched = await startWatched();
    const past = { "grpc-timeout": "0m", "connect-timeout-ms": "0" };
    const { headers, trailers, body } = await readStream(open(connectHttp2(watched.url), head, past));
    expect(`${headers["grpc-status"]} ${trailers["grpc-status"]} ${body}`).toMatch(/\b4\b|deadline_exceeded/);
    expect(watched.countRunning()).toBe(0);
    await watched.expectNobodyWatched();
  });
});
let uncaught: readonly unknown[];
beforeEach(() => {
  uncaught = collectUncaught();
});
/** Serves calls, a page, and watches. */
async function start() {
  const { behaviour, ...watches } = makeWatches();
  const limits = { maxWriteMs: 100, maxReceiveMs: 1000 };
  const { port, url } = await serveProbe(behaviour, limits, {
    pages: [async (app) => void app.get("/large", async () => "x".repeat(200_000))],
  });
  /** A later connection has been served, so the server has seen everything before it. */
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 3; i += 1) expect(await (await fetch(`${url}/livez`)).text()).toBe("alive\n");
  };
  return { port, ...watches, settle };
}
const grpc = { ":path": "/probing.Probe/Ask" };
const get = { ":method": "GET", "content-type": undefined };
const look = { ...get, ":path": "/probe/look" };
const requests: Record<string, Parameters<typeof encodeHead>[1]> = {
  "a gRPC call that is refused": { ...grpc, "grpc-encoding": "x" },
  "a gRPC call": grpc,
  "a gRPC call with a late deadline": { ...grpc, "grpc-timeout": "0m" },
  "a gRPC-Web call": { ...grpc, "content-type": "application/grpc-web" },
  "a REST call": look,
  "a REST call that waits for 100 Continue": { ...look, expect: "100-continue" },
  "a REST call with an unknown expectation": { ...look, expect: "x" },
  "a CONNECT": { ...get, ":method": "CONNECT", ":scheme": undefined },
};
it.each(Object.entries(requests))(
  "an HTTP/2 stream reset in the segment of its headers affects nobody else: %s",
  async (_name, fields) => {
    const { port, settle } = await start();
    const head = encodeHead(1, fields);
    const message = writeFrame(frameTypes.data, flags.endStream, 1, envelope(""));
    for (const code of [0, 1, 2, 5, 7, 8, 13]) {
      const reset = writeFrame(frameTypes.rstStream, 0, 1, writeUint32(code));
      for (const frames of [
        [head, reset],
        [head, message, reset],
      ]) {
        connectTcp(port).write(Buffer.concat([opening, ...frames]));
        await settle();
      }
      expect([code, uncaught]).toEqual([code, []]);
    }
  },
);
it.each(["GET", "HEAD"])("a disconnecting HTTP/2 caller ends a watch with %s", async (method) => {
  const { port, begun, countRunning, settle } = await start();
  const socket = connectTcp(port);
  const fields = { ...get, ":method": method, ":path": "/probe/watch" };
  socket.write(Buffer.concat([opening, encodeHead(1, fields, flags.endStream)]));
  await expect.poll(() => begun).toHaveLength(1);
  socket.write(writeFrame(frameTypes.rstStream, 0, 1, writeUint32(8)));
  await settle();
  await expect.poll(countRunning).toBe(0);
});
describe("a disconnecting HTTP/1.1 caller", () => {
  const getOf = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;
  const watch = getOf("/probe/watch");

  it("affects nobody else after two Connect GETs at once", async () => {
    const { port, settle } = await start();
    const request = getOf("/probing.Probe/Look?connect=v1&encoding=json&message=%7B%7D");
    for (let i = 0; i < 200; i += 1) {
      const socket = connectTcp(port);
      socket.write(request + request);
      await once(socket, "connect");
      // They disconnect before, between and after the answers.
      for (let turns = i % 20; turns > 0; turns -= 1) await setImmediate();
      socket.resetAndDestroy();
    }
    await settle();
    expect(uncaught).toEqual([]);
  });

  it.each<[string, string[]]>([
    ["alone", []],
    // Node stops reading while so much waits for the end of the watch, and does not notice a disconnect.
    ["with large pages after it", [getOf("/large"), getOf("/large")]],
    ["with garbage after it", ["GARBAGE\r\n\r\n", "x".repeat(10_000)]],
    ["with other watches after it", [watch, watch, watch]],
    ["with half a request after it", ["GET /large HTTP/1.1\r\n"]],
    ["with another watch and CONNECT after it", [watch, "CONNECT a:80 HTTP/1.1\r\nhost: a\r\n\r\n"]],
  ])("ends a watch: %s", async (_name, requests) => {
    const { port, begun, countRunning, settle } = await start();
    const socket = connectTcp(port);
    for (const request of [watch, ...requests]) {
      socket.write(request);
      await expect.poll(() => begun.length).toBeGreaterThan(0);
      await settle();
    }
    socket.destroy();
    await expect.poll(countRunning).toBe(0);
    expect(uncaught).toEqual([]);
  });
});
/** More than Node buffers of a body that nobody reads (its high-water mark, 64 KiB). */
const body = Buffer.alloc(66_000, "b");
/** Serves exchanges that the test answers. */
async function startListener() {
  const arrived = Promise.withResolvers<Exchange>();
  const listener = createListener({
    ...{ maxMetadataBytes: 16_384, maxHeaderMs: 60_000, maxWriteMs: 60_000 },
    admitConnection: () => () => {},
    countAbandoned: () => true,
    unread: createUnreadResponses(60_000, () => {}, new Clients()),
    refuseBytes: () => ({ status: 400, headers: new Headers(), body: new Uint8Array() }),
    onFault: () => {},
    onPage: () => {},
    onExchange: (exchange) => arrived.resolve(exchange),
  });
  onTestFinished(() => listener.destroy());
  const { port } = await listener.listen(0, "127.0.0.1");
  return { port, arrived: arrived.promise };
}
it("notices a disconnect although node:http had stopped reading because of an unread body", async () => {
  const { port, arrived } = await startListener();
  const socket = connectTcp(port);
  socket.on("error", () => {});
  socket.write(`POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${body.length}\r\n\r\n`);
  socket.write(Buffer.concat([body, Buffer.from("no request\r\n\r\n")]));
  const exchange = await arrived;
  const closed = new Promise<void>((resolve) => exchange.onClose(resolve));
  const pieces = (async function* () {
    yield Buffer.from("first");
    await closed;
  })();
  // The parser has seen all bytes once the peer has sent them and node:http has paused.
  await expect.poll(() => exchange.arrivedBytes()).toBe(body.length);
  void exchange.send({ status: 200, headers: new Headers(), body: pieces });
  await once(socket, "data");
  exchange.discard();
  socket.destroy();
  await closed;
});
it("gives a second reader the rest of a body that the first left early", async () => {
  const { port, arrived } = await startListener();
  const socket = connectTcp(port);
  socket.write(`POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${body.length}\r\n\r\n`);
  socket.write(body.subarray(0, 10));
  const exchange = await arrived;
  let first = 0;
  for await (const piece of exchange.pieces()) {
    first = piece.length;
    break;
  }
  socket.write(body.subarray(10));
  const rest = await exchange.readAll(() => {}).promise;
  expect(first + rest.length).toBe(body.length);
});
/** The first bytes of a PING request: length 8, type, no flags, stream 0. */
const ping = Buffer.from([0, 0, 8, frameTypes.ping, 0, 0, 0, 0, 0]);
/** GOAWAY with NO_ERROR: its sender opens no more streams. */
const goaway = writeFrame(frameTypes.goaway, 0, 0, Buffer.alloc(8));
/** Opens a watch by hand, because a Node client would answer PING. */
async function openWatch() {
  const { behaviour, ...watches } = makeWatches();
  const { port } = await serveProbe(behaviour, { maxWriteMs: 200 });
  const socket = connectTcp(port);
  socket.write(Buffer.concat([opening, encodeCall(1, "/probing.Probe/Watch", Buffer.alloc(0))]));
  await expect.poll(watches.countRunning).toBe(1);
  return { socket, ...watches };
}
it("a peer that does not answer PING loses its connection, and its call ends", async () => {
  const { socket, countRunning } = await openWatch();
  const text = await readToEnd(socket);
  await expect.poll(countRunning).toBe(0);
  expect(text).toContain(ping.toString("latin1"));
});
it.each([
  { what: "answers PING", type: frameTypes.ping, first: [] },
  { what: "closes its connection, and answers SETTINGS,", type: frameTypes.settings, first: [goaway] },
])("a peer that $what may send nothing else", async ({ type, first }) => {
  const { socket } = await openWatch();
  for (const bytes of first) socket.write(bytes);
  const decode = createFrameDecoder();
  let answered = 0;
  socket.on("data", (chunk: Buffer) => {
    const [probe] = decode(chunk).filter((frame) => frame.type === type && frame.flags === 0);
    if (probe === undefined) return;
    answered += 1;
    const payload = type === frameTypes.ping ? probe.payload : Buffer.alloc(0);
    socket.write(writeFrame(type, flags.ack, 0, payload));
  });
  // The server probes every 200 ms, and checks for answers every second.
  await expect.poll(() => answered).toBeGreaterThanOrEqual(15);
  expect(socket.closed).toBe(false);
});
it("a peer that closes, breaks the protocol and disconnects is noticed", async () => {
  const { socket, countRunning } = await openWatch();
  const broken = writeFrame(frameTypes.data, 0, 0, Buffer.alloc(1));
  socket.write(Buffer.concat([goaway, broken]));
  await once(socket, "data");
  socket.resetAndDestroy();
  await expect.poll(countRunning).toBe(0);
});

/** What a handler saw: the texts of a whole request, or a truncated one. */
type Finding = readonly string[] | "cut";
/** Serves callers with a token. The check takes a moment, in which a request arrives and is truncated. */
async function serveSlowly() {
  const findings: Finding[] = [];
  let admitted = 0;
  const behaviour: ProbeBehaviour = {
    ask({ text }) {
      findings.push([text]);
      return {};
    },
    async collect(items) {
      const texts: string[] = [];
      try {
        for await (const { text } of items) texts.push(text);
        findings.push(texts);
      } catch (error) {
        findings.push("cut");
        throw error;
      }
      return {};
    },
  };
  const { port } = await serveAdmitting(behaviour, async () => {
    await setTimeout(5);
    admitted += 1;
    return ada;
  });
  return { port, findings, countAdmitted: () => admitted };
}
/** Opens a connection whose frames the test writes. */
async function openRaw(port: number): Promise<net.Socket> {
  const socket = connectTcp(port);
  await once(socket, "connect");
  socket.resume();
  socket.write(opening);
  return socket;
}
const itemMessage = toBinary(ItemSchema, create(ItemSchema, { text: "pay 1" }));
const json = Buffer.from('{"text":"pay 1"}');
const [ask, collect] = ["/probing.Probe/Ask", "/probing.Probe/Collect"];
const bodyForms: [name: string, path: string, type: string, body: Buffer][] = [
  ["gRPC, a stream", collect, "application/grpc", envelope(itemMessage)],
  ["gRPC-Web, a stream", collect, "application/grpc-web+proto", envelope(itemMessage)],
  ["Connect, a stream", collect, "application/connect+proto", envelope(itemMessage)],
  ["gRPC, one message", ask, "application/grpc", envelope(itemMessage)],
  ["gRPC-Web, one message", ask, "application/grpc-web+proto", envelope(itemMessage)],
  ["Connect, one message", ask, "application/proto", Buffer.from(itemMessage)],
  ["Connect with JSON, one message", ask, "application/json", json],
  ["REST, one message", "/probe/ask", "application/json", json],
];
/** Truncates the first stream after some last bytes. */
type Cut = (socket: net.Socket, last: Uint8Array) => void;
const resetWith =
  (code: number): Cut =>
  (socket, last) =>
    void socket.write(Buffer.concat([last, writeFrame(frameTypes.rstStream, 0, 1, writeUint32(code))]));
const cuts: [name: string, cut: Cut][] = [
  ["RST_STREAM with NO_ERROR", resetWith(0)],
  ["RST_STREAM with INTERNAL_ERROR", resetWith(2)],
  ["RST_STREAM with CANCEL", resetWith(8)],
  ["the end of the connection", (socket, last) => void socket.end(last)],
];
describe.each(bodyForms)("over %s", (_form, path, type, body) => {
  const build = (flag = 0, length?: string): Buffer => {
    const fields = { ":path": path, "content-type": type, authorization: "ada", "content-length": length };
    return Buffer.concat([encodeHead(1, fields), writeFrame(frameTypes.data, flag, 1, body)]);
  };

  /** Sends a whole request, and expects that it is the only one. The server has seen the earlier ones by then. */
  const expectOnlyNext = async (port: number, findings: readonly Finding[]): Promise<void> => {
    const whole = () => findings.filter((found) => found !== "cut");
    (await openRaw(port)).write(build(1, String(body.length)));
    await expect.poll(() => whole().length).toBeGreaterThan(0);
    await setTimeout(20);
    expect(whole()).toEqual([["pay 1"]]);
  };

  it("a request with END_STREAM is incomplete if it announced more bytes", async () => {
    const { port, findings } = await serveSlowly();
    (await openRaw(port)).write(build(1, String(body.length + 8)));
    await expectOnlyNext(port, findings);
  });

  it.each(cuts)("a request cut off by %s is incomplete", async (_cut, cut) => {
    const { port, findings } = await serveSlowly();
    for (const pauseMs of [0, 0, 0, 1, 2]) {
      const socket = await openRaw(port);
      await setTimeout(pauseMs);
      cut(socket, build());
    }
    await expectOnlyNext(port, findings);
  });

  it.each(cuts)("a request that waits for its end until %s is incomplete", async (_, cut) => {
    const { port, findings, countAdmitted } = await serveSlowly();
    const socket = await openRaw(port);
    socket.write(build());
    await expect.poll(countAdmitted).toBe(1);
    // The server has read what arrived.
    await setTimeout(20);
    cut(socket, new Uint8Array());
    await expectOnlyNext(port, findings);
  });
});

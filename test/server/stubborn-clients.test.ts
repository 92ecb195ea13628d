/** Clients that do not read their answers, do not wait for them, or keep sending after them. */
import { once } from "node:events";
import http2 from "node:http2";
import type net from "node:net";
import { describe, expect, it } from "vitest";
import { createMetrics } from "../../src/server/metrics.ts";
import { frameTypes, opening, writeFrame, writeUint32 } from "../support/http2-frames.ts";
import { encodeHead } from "./frames.ts";
import { headOf, serveProbe } from "./probe.ts";
import { connectHttp2, connectTcp, envelope, grpcStatusOf, readStream, readToEnd } from "./raw.ts";

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

/** Requests that clients sent before the server began to stop, and that it has not read yet. */
import { once } from "node:events";
import type net from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { frameTypes, opening, writeFrame } from "../support/http2-frames.ts";
import { createFrameDecoder, encodeCall, type RawFrame } from "./frames.ts";
import { headOf, serveProbe } from "./probe.ts";
import { connectTcp, envelope, readToEnd, request } from "./raw.ts";
import { connectSession, serveTls, shakeHands } from "./tls-clients.ts";

const limits = { maxDrainMs: 600_000 };
const look = (text: string): string => `GET /probe/look?text=${text} HTTP/1.1\r\nhost: x\r\n\r\n`;
const answersIn = (text: string): string[] => text.split(/(?=HTTP\/1\.1 \d)/).filter(Boolean);
/** Serves with a connection on which one request has been answered. */
async function serveIdle() {
  const { server, port } = await serveProbe({}, limits);
  return { server, socket: await useOnce(connectTcp(port)) };
}

async function useOnce<Socket extends net.Socket>(socket: Socket): Promise<Socket> {
  socket.write(look("first"));
  await once(socket, "data");
  return socket;
}

describe("a stopping server, over HTTP/1.1,", () => {
  it.each([
    ["a request that waits on an idle connection", look("one"), "", [true]],
    ["a request in flight", "", look("one"), [true]],
    ["a request whose end arrives later", look("one").slice(0, 20), look("one").slice(20), [true]],
    ["a pipeline, partly in flight", look("one") + look("two"), look("three"), [false, false, false]],
  ])("answers %s, and then closes the connection", async (_what, early, late, areLast) => {
    const { server, socket } = await serveIdle();
    const answers = readToEnd(socket);
    socket.write(early);
    const closed = server.close();
    for (let turns = 0; turns < 20; turns += 1) await turn();
    socket.write(late);
    const all = answersIn(await answers);
    expect(all.map((answer) => /\r\nconnection: close\r\n/i.test(answer))).toEqual(areLast);
    for (const answer of all) expect(answer).toMatch(/^HTTP\/1\.1 200 .*"(one|two|three)"/s);
    await closed;
  });

  it("answers requests that follow a running one", async () => {
    const left = Promise.withResolvers<void>();
    const entered = Promise.withResolvers<void>();
    const slow = async ({ text }: { readonly text: string }) => {
      entered.resolve();
      if (text === "slow") await left.promise;
      return { text };
    };
    const { server, port } = await serveProbe({ look: slow }, limits);
    const socket = connectTcp(port);
    const answers = readToEnd(socket);
    socket.write(look("slow"));
    await entered.promise;
    socket.write(look("quick"));
    const closed = server.close();
    await turn();
    left.resolve();
    expect(answersIn(await answers)).toHaveLength(2);
    await closed;
  });

  it("answers on connections that it has not accepted yet", async () => {
    const { server, port } = await serveProbe({}, limits);
    const sockets = Array.from({ length: 30 }, () => connectTcp(port));
    const answers = sockets.map(readToEnd);
    for (const socket of sockets) socket.write(look("hello"));
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    const closed = server.close();
    for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^HTTP\/1\.1 200 .*"hello"/s);
    await closed;
  });

  it("closes connections that stay idle", async () => {
    const { server, socket } = await serveIdle();
    const rest = readToEnd(socket);
    await server.close();
    expect(await rest).toBe("");
  });
});

const ask = (streamId: number): Buffer => encodeCall(streamId, "/probing.Probe/Ask", new Uint8Array());

/** A connection whose frames the test reads. It answers pings, like all clients. */
function connectRaw2(port: number) {
  const socket = connectTcp(port);
  const frames: RawFrame[] = [];
  const decode = createFrameDecoder();
  const closed = new Promise<readonly RawFrame[]>((resolve) => socket.on("close", () => resolve(frames)));
  socket.on("data", (bytes: Buffer) => {
    for (const one of decode(bytes)) {
      frames.push(one);
      if (one.type === frameTypes.ping && one.flags === 0)
        socket.write(writeFrame(frameTypes.ping, 1, 0, one.payload));
    }
  });
  socket.write(opening);
  return { socket, closed, frames };
}

const endedStreams = (frames: readonly RawFrame[]): number[] =>
  frames
    .filter((one) => one.type === frameTypes.headers && (one.flags & 1) === 1)
    .map(({ streamId }) => streamId);

describe("a stopping server, over HTTP/2,", () => {
  it("answers calls waiting on an idle connection, and then names the last one", async () => {
    const { server, port } = await serveProbe({}, limits);
    const { socket, closed, frames } = connectRaw2(port);
    socket.write(ask(1));
    await expect.poll(() => endedStreams(frames)).toEqual([1]);
    socket.write(Buffer.concat([ask(3), ask(5)]));
    const stopped = server.close();
    const all = await closed;
    expect(endedStreams(all)).toEqual([1, 3, 5]);
    const goaways = all.filter((one) => one.type === frameTypes.goaway);
    expect(new Set(goaways.map(({ payload }) => payload.readUInt32BE(0)))).toEqual(new Set([0x7fffffff, 5]));
    await stopped;
  });

  it("answers calls opened before its first GOAWAY arrived", async () => {
    const { server, port } = await serveProbe({}, limits);
    const { socket, closed, frames } = connectRaw2(port);
    await expect.poll(() => frames.length).toBeGreaterThan(0);
    const stopped = server.close();
    socket.write(ask(1));
    expect(endedStreams(await closed)).toEqual([1]);
    await stopped;
  });

  it("answers on connections that it has not accepted yet", async () => {
    const { server, port } = await serveProbe({}, limits);
    const connections = Array.from({ length: 20 }, () => connectRaw2(port));
    for (const { socket } of connections) socket.write(ask(1));
    await Promise.all(connections.map(({ socket }) => once(socket, "connect")));
    const stopped = server.close();
    for (const { closed } of connections) expect(endedStreams(await closed)).toEqual([1]);
    await stopped;
  });
});

describe("a stopping server, over TLS,", () => {
  it("answers a request waiting on an idle connection", async () => {
    const { server, ...place } = await serveTls({ limits });
    const socket = await useOnce(await shakeHands(place, { ALPNProtocols: ["http/1.1"] }));
    const answer = readToEnd(socket);
    socket.write(look("second"));
    const closed = server.close();
    expect(await answer).toMatch(/^HTTP\/1\.1 200 .*\r\nconnection: close\r\n.*"second"/is);
    await closed;
  });

  it("answers running HTTP/2 calls, many at a time", async () => {
    const { server, ...place } = await serveTls({ limits });
    const session = await connectSession(place);
    const open = () => request(session, headOf("Ask"), envelope(""));
    await open();
    const calls = Array.from({ length: 100 }, open);
    await turn();
    const closed = server.close();
    for (const call of calls) expect((await call).trailers["grpc-status"]).toBe("0");
    await closed;
  });
});

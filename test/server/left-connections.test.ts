/**
 * Callers who disconnect at the worst moment: nothing they do to their connection may end the server or leave
 * work behind.
 */
import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { beforeEach, describe, expect, it } from "vitest";
import { collectUncaught } from "../support/collect-uncaught.ts";
import { flags, frameTypes, opening, writeFrame, writeUint32 } from "../support/http2-frames.ts";
import { encodeHead } from "./frames.ts";
import { makeWatches, serveProbe } from "./probe.ts";
import { connectTcp, envelope } from "./raw.ts";

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

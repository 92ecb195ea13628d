/**
 * Callers who disconnect at the worst moment: nothing they do to their connection may end the server or leave
 * work behind.
 */
import { once } from "node:events";
import net from "node:net";
import { setImmediate } from "node:timers/promises";
import { createServiceImplSpec, type ServiceImpl } from "@connectrpc/connect";
import { beforeEach, describe, expect, it } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { collectUncaught } from "../support/collect-uncaught.ts";
import { flags, frameTypes, opening, writeFrame, writeUint32 } from "../support/http2-frames.ts";
import { encodeHead } from "./frames.ts";
import { connectTcp, envelope } from "./raw.ts";
import { serve } from "./serve.ts";

let uncaught: readonly unknown[];

beforeEach(() => {
  uncaught = collectUncaught();
});

/** Serves calls, a page, and streams that last until their callers disconnect. */
async function start() {
  const watches = { begun: 0, running: 0 };
  const chain: Partial<ServiceImpl<typeof BlockchainService>> = {
    // biome-ignore lint/correctness/useYield: it sends no block
    async *watchBlocks(_request, { signal }) {
      watches.begun += 1;
      watches.running += 1;
      if (!signal.aborted) await once(signal, "abort");
      watches.running -= 1;
    },
  };
  const calls: Partial<ServiceImpl<typeof PqcService>> = {
    getHealth: async () => ({ status: "success" }),
  };
  const { port, url } = await serve({
    services: [
      createServiceImplSpec<typeof BlockchainService>(BlockchainService, chain),
      createServiceImplSpec<typeof PqcService>(PqcService, calls),
    ],
    limits: { maxWriteMs: 100, maxReceiveMs: 1000 },
    pages: [async (app) => void app.get("/large", async () => "x".repeat(200_000))],
  });
  /** A later connection has been served, so the server has seen everything before it. */
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 3; i += 1) expect(await (await fetch(`${url}/livez`)).text()).toBe("alive\n");
  };
  return { port, watches, settle };
}

const grpc = { ":path": "/pqc.PqcService/GetHealth" };
const get = { ":method": "GET", "content-type": undefined };
const getHealth = { ...get, ":path": "/api/grpc/health" };

describe("an HTTP/2 stream reset in the segment of its headers", () => {
  const requests = [
    { name: "a gRPC call that is refused", fields: { ...grpc, "grpc-encoding": "x" } },
    { name: "a gRPC call", fields: grpc },
    { name: "a gRPC call with a late deadline", fields: { ...grpc, "grpc-timeout": "0m" } },
    { name: "a gRPC-Web call", fields: { ...grpc, "content-type": "application/grpc-web" } },
    { name: "a REST call", fields: getHealth },
    { name: "a REST call that waits for 100 Continue", fields: { ...getHealth, expect: "100-continue" } },
    { name: "a REST call with an unknown expectation", fields: { ...getHealth, expect: "x" } },
    { name: "a CONNECT", fields: { ...get, ":method": "CONNECT", ":scheme": undefined } },
  ];

  it.each(requests)("affects nobody else: $name", async ({ fields }) => {
    const { port, settle } = await start();
    const head = encodeHead(1, fields);
    const message = writeFrame(frameTypes.data, flags.endStream, 1, envelope(""));
    for (const code of [0, 1, 2, 5, 7, 8, 13]) {
      const reset = writeFrame(frameTypes.rstStream, 0, 1, writeUint32(code));
      connectTcp(port).write(Buffer.concat([opening, head, reset]));
      await settle();
      connectTcp(port).write(Buffer.concat([opening, head, message, reset]));
      await settle();
      expect([code, uncaught]).toEqual([code, []]);
    }
  });
});

describe("a disconnecting HTTP/2 caller", () => {
  it.each(["GET", "HEAD"])("ends a watch with %s", async (method) => {
    const { port, watches, settle } = await start();
    const socket = connectTcp(port);
    const fields = { ...get, ":method": method, ":path": "/api/blockchain/chain/watch" };
    socket.write(Buffer.concat([opening, encodeHead(1, fields, flags.endStream)]));
    await expect.poll(() => watches.begun).toBe(1);
    socket.write(writeFrame(frameTypes.rstStream, 0, 1, writeUint32(8)));
    await settle();
    await expect.poll(() => watches.running).toBe(0);
  });
});

describe("a disconnecting HTTP/1.1 caller", () => {
  it("affects nobody else after two Connect GETs at once", async () => {
    const { port, settle } = await start();
    const path = "/pqc.PqcService/GetHealth?connect=v1&encoding=json&message=%7B%7D";
    const request = `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;
    for (let i = 0; i < 200; i += 1) {
      const socket = net.connect(port, "127.0.0.1");
      socket.on("error", () => {});
      socket.write(request + request);
      await once(socket, "connect");
      // They disconnect before, between and after the answers.
      for (let turns = i % 20; turns > 0; turns -= 1) await setImmediate();
      socket.resetAndDestroy();
    }
    await settle();
    expect(uncaught).toEqual([]);
  });

  const get = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;
  it.each([
    ["alone", []],
    // Node stops reading while so much waits for the end of the watch, and does not notice a disconnect.
    ["with large pages after it", [get("/large"), get("/large")]],
    ["with garbage after it", ["GARBAGE\r\n\r\n", "x".repeat(10_000)]],
    ["with other watches after it", Array(3).fill(get("/api/blockchain/chain/watch"))],
    ["with half a request after it", ["GET /large HTTP/1.1\r\n"]],
    [
      "with another watch and CONNECT after it",
      [get("/api/blockchain/chain/watch"), "CONNECT localhost:80 HTTP/1.1\r\nhost: localhost\r\n\r\n"],
    ],
  ])("ends a watch: %s", async (_name, requests) => {
    const { port, watches, settle } = await start();
    const socket = net.connect(port, "127.0.0.1");
    socket.on("error", () => {});
    for (const request of [get("/api/blockchain/chain/watch"), ...requests]) {
      socket.write(request);
      await expect.poll(() => watches.begun).toBeGreaterThan(0);
      await settle();
    }
    socket.destroy();
    await expect.poll(() => watches.running).toBe(0);
    expect(uncaught).toEqual([]);
  });
});

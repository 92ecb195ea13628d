/** What a client can make the server hold: bodies that never end, responses that nobody reads. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import net from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const timeout = 360_000;
const mebibyte = 1024 * 1024;

async function start(...args: string[]): Promise<RunningServer & { port: number }> {
  const server = await startServer({ dataDir: makeTemporaryDirectory(), args });
  onTestFinished(async () => void (await server.stop("SIGKILL")));
  return { ...server, port: Number(new URL(server.url).port) };
}

/** Bytes of memory that the program has now (proc(5), /proc/pid/status). */
function residentBytes({ process: { pid } }: RunningServer): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
}

/** Opens a connection of its own and writes to it until the peer takes no more. */
async function open(port: number, ...parts: (string | Buffer)[]): Promise<net.Socket> {
  const socket = net.connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {});
  await once(socket, "connect");
  for (const part of parts) socket.write(part);
  return socket;
}

/** What the server sent on each of these connections until it closed or went quiet. */
function readStatuses(sockets: readonly net.Socket[]): Map<string, number> {
  const statuses = new Map<string, number>();
  for (const socket of sockets)
    socket.once("data", (bytes: Buffer) => {
      const [, status = ""] = bytes.toString("latin1").split(" ");
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    });
  return statuses;
}

const isLinux = process.platform === "linux";

/** MiB of garbage that a busy machine has not collected yet; the uploads have 2,000. */
const maxGarbageMebibytes = 400;

describe.runIf(isLinux)("500 uploads of 4 MiB that each lack a byte (on Linux)", { timeout }, () => {
  const body = Buffer.alloc(4 * mebibyte - 1, "a");
  const head = (path: string) =>
    `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${4 * mebibyte}\r\n\r\n`;

  it.each(["/api/grpc/sign", "/pqc.PqcService/SignData"])(
    "hold no more than the budget: %s",
    async (path) => {
      const server = await start("--max-buffered-bytes-per-client", String(64 * mebibyte));
      const before = residentBytes(server);
      const sockets = await Promise.all(
        Array.from({ length: 500 }, () => open(server.port, head(path), body)),
      );
      const statuses = readStatuses(sockets);
      // Those within the budget are still waited for; all others are answered.
      const countAnswered = () => [...statuses.values()].reduce((sum, count) => sum + count, 0);
      await expect.poll(countAnswered, { timeout: timeout / 2 }).toBeGreaterThan(450);
      // On a slow machine the first of them run out of time (408, over Connect 504): 16 in 30 seconds.
      expect([...statuses.keys()].filter((status) => !["429", "408", "504"].includes(status))).toEqual([]);
      expect(statuses.get("429")).toBeGreaterThan(250);
      expect((residentBytes(server) - before) / mebibyte).toBeLessThan(64 + maxGarbageMebibytes);
      // Once they go, the room is free again.
      for (const socket of sockets) socket.destroy();
      const sign = () =>
        fetch(`${server.url}/api/grpc/sign`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: '{"data":"aGVsbG8="}',
        }).then(({ status }) => status);
      await expect.poll(sign, { timeout: timeout / 2 }).toBe(200);
    },
  );

  it("are refused before their bodies are read if they have no token", async () => {
    const server = await start("--auth", "token");
    const before = residentBytes(server);
    const sockets = await Promise.all(
      Array.from({ length: 200 }, () => open(server.port, head("/api/kms/sign"))),
    );
    const statuses = readStatuses(sockets);
    await expect.poll(() => statuses.get("401") ?? 0, { timeout: timeout / 2 }).toBe(200);
    expect((residentBytes(server) - before) / mebibyte).toBeLessThan(maxGarbageMebibytes);
  });
});

describe("responses that nobody reads", { timeout }, () => {
  it("are given up, with their connections", async () => {
    const server = await start("--max-write-ms", "500");
    const socket = await open(server.port);
    socket.pause();
    // More than the buffers of both kernels hold.
    for (let i = 0; i < 40; i += 1) socket.write("GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n");
    const closed = once(socket, "close");
    await new Promise<void>((resolve) => {
      const look = setInterval(async () => {
        const text = await fetch(`${server.url}/metrics`).then((answer) => answer.text());
        if (!/^qsp_responses_dropped_total [1-9]/m.test(text)) return;
        clearInterval(look);
        resolve();
      }, 200);
    });
    socket.resume();
    await closed;
  });
});

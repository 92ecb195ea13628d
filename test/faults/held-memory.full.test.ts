/** What a client can make the server hold: bodies that never end, and responses that nobody reads. */
import { once } from "node:events";
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

/** Opens a new connection and writes until the peer accepts no more. */
async function open(port: number, ...parts: (string | Buffer)[]): Promise<net.Socket> {
  const socket = net.connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {});
  await once(socket, "connect");
  for (const part of parts) socket.write(part);
  return socket;
}

/** Bytes of request bodies that the server has read and holds. */
async function readHeldBytes({ url }: RunningServer): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^qsp_buffered_bytes (\d+)$/m.exec(text)?.[1]);
}

/** Outcome of each connection so far; undefined while it is open. */
function readStatuses(sockets: readonly net.Socket[]): Map<string, number> {
  const statuses = new Map<string, number>();
  const count = (status: string): void => void statuses.set(status, (statuses.get(status) ?? 0) + 1);
  for (const socket of sockets) {
    let isAnswered = false;
    socket.once("data", (bytes: Buffer) => {
      isAnswered = true;
      count(bytes.toString("latin1").split(" ")[1] ?? "");
    });
    // The server may cut off a slow client, which then loses the answer that it has not read.
    if (socket.destroyed) count("cut");
    else socket.once("close", () => isAnswered || count("cut"));
  }
  return statuses;
}

describe("500 uploads of 4 MiB, each one byte short", { timeout }, () => {
  const body = Buffer.alloc(4 * mebibyte - 1, "a");
  const head = (path: string) =>
    `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${4 * mebibyte}\r\n\r\n`;

  it.each(["/api/grpc/sign", "/pqc.PqcService/SignData"])("hold at most the budget: %s", async (path) => {
    const server = await start("--max-buffered-bytes-per-client", String(64 * mebibyte));
    const sockets = await Promise.all(Array.from({ length: 500 }, () => open(server.port, head(path), body)));
    const statuses = readStatuses(sockets);
    // The server keeps waiting for those within the budget and has answered all others.
    const countAnswered = () => [...statuses.values()].reduce((sum, count) => sum + count, 0);
    await expect.poll(countAnswered, { timeout: timeout / 2 }).toBeGreaterThan(450);
    // On a slow machine the first of them time out (408, over Connect 504): 16 in 30 seconds.
    const expected = ["429", "408", "504", "cut"];
    expect([...statuses.keys()].filter((status) => !expected.includes(status))).toEqual([]);
    expect(statuses.get("429")).toBeGreaterThan(0);
    expect(await readHeldBytes(server)).toBeLessThanOrEqual(64 * mebibyte);
    // Once they disconnect, the budget is free again.
    for (const socket of sockets) socket.destroy();
    const sign = () =>
      fetch(`${server.url}/api/grpc/sign`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"data":"aGVsbG8="}',
      }).then(({ status }) => status);
    await expect.poll(sign, { timeout: timeout / 2 }).toBe(200);
  });

  it("are rejected without a token before the server reads their bodies", async () => {
    const server = await start("--auth", "token", "--metrics", "open");
    const sockets = await Promise.all(
      Array.from({ length: 200 }, () => open(server.port, head("/api/kms/sign"))),
    );
    const statuses = readStatuses(sockets);
    await expect.poll(() => statuses.get("401") ?? 0, { timeout: timeout / 2 }).toBe(200);
    expect(await readHeldBytes(server)).toBe(0);
  });
});

describe("responses that nobody reads", { timeout }, () => {
  it("are dropped with their connections", async () => {
    const server = await start("--max-write-ms", "500");
    const socket = await open(server.port);
    socket.pause();
    // More than the socket buffers of both kernels hold.
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

/** What a client can make the server hold: bodies that never end. */
import { once } from "node:events";
import net from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { callRest } from "../services/answers.ts";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const timeout = 360_000;
const polling = { timeout: timeout / 2 };
const mebibyte = 1024 * 1024;

async function start(...args: string[]): Promise<RunningServer> {
  const server = await startServer({ dataDir: makeTemporaryDirectory(), args });
  onTestFinished(async () => void (await server.stop("SIGKILL")));
  return server;
}

/**
 * Begins uploads of 4 MiB, each on its own connection, and counts their outcomes so far. The server may cut off a slow
 * client, which then loses the answer that it has not read.
 */
async function upload(url: string, path: string, { count, body = "" }: { count: number; body?: string }) {
  const outcomes = new Map<string, number>();
  const add = (outcome: string): void => void outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  const fields = ["host: localhost", "content-type: application/json", `content-length: ${4 * mebibyte}`];
  const sockets = Array.from({ length: count }, () => {
    const socket = net.connect(Number(new URL(url).port), "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => {});
    const answered = once(socket, "data").then(([bytes]) => String(bytes).split(" ")[1] ?? "");
    const cut = once(socket, "close").then(() => "cut");
    void Promise.race([answered, cut]).then(add, () => add("cut"));
    socket.write(`POST ${path} HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n${body}`);
    return socket;
  });
  return { outcomes, sockets };
}

/** Bytes of request bodies that the server has read and holds. */
async function readHeldBytes({ url }: RunningServer): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^qsp_buffered_bytes (\d+)$/m.exec(text)?.[1]);
}

describe("500 uploads of 4 MiB, each one byte short", { timeout }, () => {
  const body = "a".repeat(4 * mebibyte - 1);

  it.each(["/api/grpc/sign", "/pqc.PqcService/SignData"])("hold at most the budget: %s", async (path) => {
    const server = await start("--max-buffered-bytes-per-client", String(64 * mebibyte));
    const { outcomes, sockets } = await upload(server.url, path, { count: 500, body });
    // The server keeps waiting for those within the budget and has answered all others.
    const countAnswered = () => [...outcomes.values()].reduce((sum, count) => sum + count, 0);
    await expect.poll(countAnswered, polling).toBeGreaterThan(450);
    // On a slow machine the first of them time out (408, over Connect 504): 16 in 30 seconds.
    const expected = ["429", "408", "504", "cut"];
    expect([...outcomes.keys()].filter((outcome) => !expected.includes(outcome))).toEqual([]);
    expect(outcomes.get("429")).toBeGreaterThan(0);
    expect(await readHeldBytes(server)).toBeLessThanOrEqual(64 * mebibyte);
    // Once they disconnect, the budget is free again.
    for (const socket of sockets) socket.destroy();
    const sign = () => callRest(server.url, "POST /api/grpc/sign", { data: "aGVsbG8=" });
    await expect.poll(sign, polling).toMatchObject({ status: 200 });
  });

  it("are rejected without a token before the server reads their bodies", async () => {
    const server = await start("--auth", "token", "--metrics", "open");
    const { outcomes } = await upload(server.url, "/api/kms/sign", { count: 200 });
    await expect.poll(() => outcomes.get("401") ?? 0, polling).toBe(200);
    expect(await readHeldBytes(server)).toBe(0);
  });
});

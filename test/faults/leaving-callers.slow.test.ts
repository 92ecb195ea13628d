/** Callers who leave each call at many moments. What fails then must not count as an unhandled rejection. */
import { once } from "node:events";
import net from "node:net";
import { setTimeout } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, expect, it } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { startApi } from "../openapi/api-server.ts";
import { callExamples, loadExamples, type Outcome } from "../openapi/call-examples.ts";
import { collectUncaught } from "../support/collect-uncaught.ts";

/** Moments at which a caller leaves each call, spread over the time until its answer. */
const moments = process.env.QSP_TEST_LONG === "1" ? 100 : 8;
/** A verification reads 500 blocks at once. */
const blocks = 600;
/** Milliseconds to wait for the answer to a watch, which may not come. */
const maxMs = 200;

/** Encodes a request that has been answered before. */
function encode({ call: { method, target, body }, headers }: Outcome): string {
  const text = body === undefined ? "" : JSON.stringify(body);
  const fields = { host: "localhost", ...headers, "content-length": Buffer.byteLength(text) };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${target} HTTP/1.1\r\n${lines.join("")}\r\n${text}`;
}

function send(port: number, request: string): net.Socket {
  const socket = net
    .connect(port, "127.0.0.1")
    .resume()
    .on("error", () => {});
  socket.write(request);
  return socket;
}

/** @returns milliseconds until the first bytes of the answer */
async function measure(port: number, request: string): Promise<number> {
  const startedMs = performance.now();
  const socket = send(port, request);
  await Promise.race([once(socket, "data"), setTimeout(maxMs)]);
  socket.destroy();
  return performance.now() - startedMs;
}

it("callers who leave cause no unhandled rejection", { timeout: 600_000 }, async () => {
  const api = await startApi("open", afterAll);
  const port = Number(new URL(api.url).port);
  const answered = await callExamples(api, await loadExamples());
  const chain = createClient(
    BlockchainService,
    createConnectTransport({ baseUrl: api.url, httpVersion: "2" }),
  );
  for (let i = 0; i < blocks; i += 100)
    await Promise.all(Array.from({ length: 100 }, () => chain.addBlock({ data: Buffer.from("hello") })));
  let cause = "";
  const uncaught = collectUncaught((error) => `${cause}: ${error}`);
  for (const [name, outcome] of answered) {
    cause = name;
    const request = encode(outcome);
    const untilAnswerMs = await measure(port, request);
    for (let moment = 0; moment < moments; moment += 1) {
      const socket = send(port, request);
      await setTimeout((untilAnswerMs * moment) / moments);
      socket.destroy();
    }
  }
  expect((await fetch(`${api.url}/api/health`)).status).toBe(200);
  expect(uncaught).toEqual([]);
});

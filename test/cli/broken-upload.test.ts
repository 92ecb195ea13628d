/** An upload whose input fails midway must never end the stream regularly. */
import { once } from "node:events";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { readVerbLine } from "../../src/cli/command-line/options.ts";
import { createClient } from "../../src/cli/connection/api-client.ts";

const server = http2.createServer();
/** Bytes received per request, and whether its stream ended regularly. */
const requests: Promise<{ readonly bytes: number; readonly isWhole: boolean }>[] = [];

const verb = { name: "upload", operands: [], options: {} };

beforeAll(async () => {
  server.on("stream", (stream) => {
    let bytes = 0;
    let isWhole = false;
    stream.on("error", () => {});
    stream.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
    });
    stream.on("end", () => {
      isWhole = !stream.aborted;
    });
    const closed = new Promise((resolve) => stream.once("close", resolve));
    requests.push(closed.then(() => ({ bytes, isWhole })));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});

afterAll(() => void server.close());

it("breaks the connection whenever the input fails", async () => {
  const { port } = server.address() as AddressInfo;
  for (let i = 0; i < 200; i += 1) {
    const { options } = readVerbLine(verb, ["--url", `http://127.0.0.1:${port}`]);
    const client = createClient(options);
    async function* parts() {
      yield { part: { case: "header" as const, value: { keyId: "key" } } };
      yield { part: { case: "chunk" as const, value: Buffer.from("hello") } };
      await setTimeout(i % 4);
      throw new RangeError("the input failed");
    }
    const answers = client.stream(KmsService.method.signStream, parts());
    await expect(answers.next()).rejects.toThrow("the input failed");
    client.close();
  }
  const received = await Promise.all(requests);
  expect(received.length).toBeGreaterThan(0);
  expect(received.filter(({ isWhole }) => isWhole)).toEqual([]);
});

/** Streams between `qsp` and a server: followed logs, and an upload that breaks. */
import { createServer } from "node:http2";
import { setTimeout } from "node:timers/promises";
import { expect, it } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { readVerbLine } from "../../src/cli/command-line/options.ts";
import { createClient } from "../../src/cli/connection/api-client.ts";
import { listen, startQsp, timeout, useServer } from "./qsp.ts";

const server = useServer();

it.each<[string, () => Promise<unknown>, readonly object[]]>([
  [
    "kms audit --follow --after 0",
    () => server.client(KmsService).createKey({}),
    [{ entry: { sequence: 1, operation: "CREATE" } }, { entry: { sequence: 2 } }],
  ],
  [
    "chain watch --from 1",
    () => server.client(BlockchainService).addBlock({ data: Buffer.from("a") }),
    [{ block: { index: 1 } }, { block: { index: 2 } }],
  ],
  [
    "identity log --watch --after 0",
    async () => {},
    [{ entry: { sequence: 1, operation: "CREATE_ISSUER_KEY" } }],
  ],
])(
  "%s prints one line per item as it arrives, until it is interrupted",
  { timeout },
  async (line, add, items) => {
    await server.client(BlockchainService).registerNode({});
    await add();
    const { child, end } = startQsp([...line.split(" "), "--json"], server.place());
    for (const item of items) {
      const answer = await new Promise((resolve) => child.stdout?.once("data", resolve));
      expect(JSON.parse(String(answer).split("\n", 1)[0] ?? "")).toMatchObject(item);
      await add();
    }
    child.kill("SIGTERM");
    expect((await end).code).toBe(130);
  },
);

it("an upload whose input fails midway never ends its stream regularly", { timeout }, async () => {
  /** Whether the stream of each request ended regularly. */
  const requests: Promise<boolean>[] = [];
  const other = createServer().on("stream", (stream) => {
    let isWhole = false;
    stream.on("error", () => {});
    stream.resume().on("end", () => {
      isWhole = !stream.aborted;
    });
    requests.push(new Promise((resolve) => stream.once("close", () => resolve(isWhole))));
  });
  const url = `http://127.0.0.1:${await listen(other)}`;
  const { options } = readVerbLine({ name: "upload", operands: [], options: {} }, ["--url", url]);
  for (let i = 0; i < 200; i += 1) {
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
  expect(requests.length).toBeGreaterThan(0);
  expect(await Promise.all(requests)).not.toContain(true);
});

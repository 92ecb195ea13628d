/** What only a separate process shows (exit codes, signals, redirections, closed pipes), and streams that break. */
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:http2";
import { createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { readVerbLine } from "../../src/cli/command-line/options.ts";
import { createClient } from "../../src/cli/connection/api-client.ts";
import { refusal } from "../support/refusal.ts";
import { inShell, listen, qsp, qspDone, runQsp, startQsp, timeout, useServer } from "./qsp.ts";

const server = useServer();

describe("a verb that watches", () => {
  // The tests expect the first entry of each log.
  const fresh = useServer();

  it.each<[string, () => Promise<unknown>, readonly object[]]>([
    [
      "kms audit --follow --after 0",
      () => fresh.client(KmsService).createKey({}),
      [{ entry: { sequence: 1, operation: "CREATE" } }, { entry: { sequence: 2 } }],
    ],
    [
      "chain watch --from 1",
      () => fresh.client(BlockchainService).addBlock({ data: Buffer.from("a") }),
      [{ block: { index: 1 } }, { block: { index: 2 } }],
    ],
    [
      "identity log --watch --after 0",
      async () => {},
      [{ entry: { sequence: 1, operation: "CREATE_ISSUER_KEY" } }],
    ],
  ])(
    "prints one line per item as it arrives, until it is interrupted: %s",
    { timeout },
    async (line, add, items) => {
      await fresh.client(BlockchainService).registerNode({});
      await add();
      const { child, end } = startQsp([...line.split(" "), "--json"], fresh.place());
      for (const item of items) {
        const answer = await new Promise((resolve) => child.stdout?.once("data", resolve));
        expect(JSON.parse(String(answer).split("\n", 1)[0] ?? "")).toMatchObject(item);
        await add();
      }
      child.kill("SIGTERM");
      expect((await end).code).toBe(130);
    },
  );
});

describe("qsp", { timeout }, () => {
  it("ends with the code of the verb when run as npm installs it", async () => {
    expect((await runQsp(["kms", "get", "key-none"], { ...server.place(), isInstalled: true })).code).toBe(3);
  });

  it.each([
    ["the connection breaks", () => createTcpServer((socket) => socket.destroy())],
    ["a server of another kind answers", () => createHttpServer((_, answer) => answer.writeHead(404).end())],
    ["nobody answers", () => createTcpServer((socket) => onTestFinished(() => void socket.destroy()))],
  ])("ends with 4 if %s", async (_, create) => {
    const url = `http://127.0.0.1:${await listen(create())}`;
    const run = await qsp(["health", "--timeout", "1"], { ...server.place(), url });
    expect(run).toMatchObject({ code: 4, stdout: "" });
  });

  it("ends with 130 when it is interrupted", async () => {
    const options = { ...server.place(), isInstalled: true, hasOwnGroup: true };
    const { child, end } = startQsp(["chain", "watch"], options);
    await once(child.stdout ?? child, "data");
    // Like a terminal: interrupts every process of the group.
    process.kill(-(child.pid ?? 0), "SIGINT");
    expect(await end).toMatchObject({ code: 130, stderr: "" });
  });

  it("refuses a directory as standard input", async () => {
    expect(await inShell("qsp call nft.NftService/Mint - < .", server.place())).toMatchObject({
      code: 2,
      stderr: "qsp: standard input is a directory; give it a file\n",
    });
  });

  it("shows the blanks in a key ID that imitates an entry, in a list and while it watches", async () => {
    const place = server.place();
    const keyId = `${" ".repeat(20)}7  SIGN  OK`;
    await refusal(server.client(KmsService).sign({ keyId, data: new Uint8Array(1) }));
    const shown = `${"\u2423".repeat(20)}7\u2423\u2423SIGN\u2423\u2423OK  reason=KEY_NOT_FOUND`;
    expect(await qspDone(["kms", "audit", "--outcome", "REFUSED"], place)).toContain(shown);
    const words = ["kms", "audit", "--outcome", "REFUSED", "--watch", "--after", "0"];
    const { child, end } = startQsp(words, place);
    expect(String((await once(child.stdout ?? child, "data"))[0])).toContain(shown);
    child.kill("SIGTERM");
    await end;
  });

  it.each(["help all", "kms audit --watch --after 0"])(
    "ends %s without an error if the reader closes the pipe",
    async (words) => {
      const place = server.place();
      for (let i = 0; i < 20; i += 1) await qspDone(["kms", "create"], place);
      const { code, stderr } = await inShell(`qsp ${words} | head -n 1; exit "\${PIPESTATUS[0]}"`, place);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    },
  );
});

it("leaves no file behind if a registration is interrupted", { timeout }, async () => {
  const silent = createTcpServer((socket) => onTestFinished(() => void socket.destroy()));
  const place = { ...server.place(), url: `http://127.0.0.1:${await listen(silent)}` };
  const { child, end } = startQsp(["device", "register"], place);
  await once(silent, "connection");
  child.kill("SIGINT");
  expect(await end).toMatchObject({ code: 130, stderr: "" });
  expect(readdirSync(place.cwd)).toEqual([]);
});

it("registers no tunnel whose file cannot be written", async () => {
  const place = server.place();
  writeFileSync(join(place.cwd, "f"), "");
  const run = await qsp(["tunnel", "up", "--tunnel", "f/t.json"], place);
  expect(run).toMatchObject({ code: 2, stderr: expect.stringContaining("f/t.json cannot be written") });
  expect(await qspDone(["tunnel", "list"], place)).toBe("There are no tunnels.\n");
});

it("ends with 1 for an answer of no, even if the reader has closed the pipe", { timeout }, async () => {
  const place = server.place();
  for (const name of ["ada", "eve"]) await qspDone(["keygen", name], place);
  await qspDone(["sign", "ada.key", "--key-file", "ada.key", "--out", "ada.sig"], place);
  const { child, end } = startQsp(
    ["verify", "ada.key", "--signature", "ada.sig", "--public-key", "eve.pub"],
    place,
  );
  child.stdout?.destroy();
  expect(await end).toMatchObject({ code: 1, stdout: "", stderr: "" });
});

// Every write to /dev/full fails like on a full disk.
describe.runIf(process.platform === "linux")("a standard output on a full disk", { timeout }, () => {
  // One of each way to print: help, an answer, a script, and a verb that works on a store.
  it.each(["help", "kms list", "completion bash", "store verify --data-dir data"])(
    "ends %s with 4 and one line",
    async (words) => {
      const place = server.place();
      if (words.includes("data")) await qspDone(["store", "init", "--data-dir", "data"], place);
      const { code, stderr } = await inShell(`qsp ${words} >/dev/full`, place);
      // Verification progress is on standard error as well.
      const lines = stderr.split("\n").filter((line) => !/(?:verified|opened)$/.test(line));
      expect({ code, lines }).toEqual({
        code: 4,
        lines: ["qsp: standard output cannot be written: its disk is full", ""],
      });
    },
  );

  it.each(["hides no severer exit code", "of standard error changes nothing"])("%s", async (what) => {
    const redirected = what.includes("error") ? "2>/dev/full" : ">/dev/full 2>/dev/null";
    expect((await inShell(`qsp kms get key-none ${redirected}`, server.place())).code).toBe(3);
  });
});

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

import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { createCallRegistry, listMethods, nameMethod } from "../../src/cli/verbs/call-registry.ts";
import { main } from "../support/program.ts";
import { loadPackages } from "../support/whole-program.ts";
import { environmentOf, qsp, qspDone, runQsp, timeout, useServer } from "./qsp.ts";

const server = useServer();
const lines = (text: string): Record<string, unknown>[] =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("qsp call", { timeout }, () => {
  it("reads the request from a file or standard input, or sends an empty one", async () => {
    const place = server.place();
    writeFileSync(join(place.cwd, "request.json"), '{"name":"from a file"}');
    const call = ["call", "nft.NftService/Mint"];
    await qspDone([...call, "@request.json"], place);
    const { code } = await runQsp([...call, "-"], { ...place, stdin: '{"name":"from stdin"}' });
    expect(code).toBe(0);
    const { tokens } = JSON.parse(await qspDone(["call", "nft.NftService/ListTokens"], place));
    expect(tokens.map(({ name }: { name: string }) => name)).toEqual(["from a file", "from stdin"]);
  });

  it("refuses a request that is not UTF-8, and a directory", async () => {
    const place = server.place();
    const latin1 = Buffer.from('{"name":"M\xfcller"}', "latin1");
    writeFileSync(join(place.cwd, "request.json"), latin1);
    const call = ["call", "nft.NftService/Mint"];
    expect(await qsp([...call, "@request.json"], place)).toMatchObject({
      code: 2,
      stderr: "qsp: the request is not UTF-8\n",
    });
    const stream = ["call", "kms.KmsService/SignStream"];
    expect(await qsp([...stream, "@request.json"], place)).toMatchObject({
      code: 2,
      stderr: "qsp: line 1 of request.json is not UTF-8\n",
    });
    const child = spawn("sh", ["-c", '"$0" "$@" < .', process.execPath, main, ...call, "-"], {
      cwd: place.cwd,
      env: environmentOf(place),
    });
    const [stderr] = await Promise.all([text(child.stderr), once(child, "close")]);
    expect([child.exitCode, stderr]).toEqual([2, "qsp: standard input is a directory; give it a file\n"]);
  });

  it("sends one stream message per JSON line, and prints the single answer", async () => {
    const { result: key } = await server.client(KmsService).createKey({});
    const stdin = `{"header":{"keyId":"${key?.keyId}"}}\n\n{"chunk":"aGVs"}\n{"chunk":"bG8="}\n`;
    const stdout = await qspDone(["call", "kms.KmsService/SignStream", "-"], { ...server.place(), stdin });
    const { result } = JSON.parse(stdout);
    const verified = await server.client(KmsService).verify({
      keyId: key?.keyId ?? "",
      data: Buffer.from("hello"),
      signature: Buffer.from(result.signature, "base64"),
    });
    expect(verified.result?.valid).toBe(true);
  });

  it("prints one JSON line per streamed answer, as each arrives", async () => {
    await server.client(BlockchainService).registerNode({});
    await server.client(BlockchainService).addBlock({ data: Buffer.from("x") });
    const run = await qsp(
      ["call", "blockchain.BlockchainService/WatchBlocks", "--timeout", "3"],
      server.place(),
    );
    expect(run.code).toBe(4);
    expect(lines(run.stdout).map(({ block }) => block)).toMatchObject([{ index: 0 }, { index: 1 }]);
  });

  it("makes a bidirectional streaming call, with one answer per line", async () => {
    const stdin =
      '{"send":{"tunnelId":"none","size":3}}\n{"receive":{"tunnelId":"none","packet":"' +
      "A".repeat(40) +
      '"}}';
    const stdout = await qspDone(["call", "vpn.VpnService/Tunnel", "-"], { ...server.place(), stdin });
    const refused = { error: { reason: "TUNNEL_NOT_FOUND" } };
    expect(lines(stdout)).toMatchObject([refused, refused]);
  });

  it("lists every call with its REST path", async () => {
    const stdout = await qspDone(["call", "--list"], server.place());
    for (const method of listMethods(createCallRegistry(await loadPackages())))
      expect(stdout).toContain(nameMethod(method));
    expect(stdout).toMatch(/^kms\.KmsService\/SignStream +in$/m);
    expect(stdout).toMatch(/^kms\.KmsService\/DestroyKey +DELETE \/api\/kms\/key\/\{key_id\}$/m);
  });
});

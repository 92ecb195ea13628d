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
  it("makes a call of one message, and prints the answer as one line of JSON", async () => {
    const stdout = await qspDone(
      ["call", "kms.KmsService/CreateKey", '{"alias":"invoices"}'],
      server.place(),
    );
    expect(stdout.split("\n")).toHaveLength(2);
    expect(JSON.parse(stdout)).toMatchObject({
      status: "success",
      result: { alias: "invoices", usage: "SIGN" },
    });
  });

  it("takes the request from a file, from standard input, or leaves it out", async () => {
    const place = server.place();
    writeFileSync(join(place.cwd, "request.json"), '{"name":"from a file"}');
    const call = ["call", "nft.NftService/Mint"];
    await qspDone([...call, "@request.json"], place);
    const { code } = await runQsp([...call, "-"], { ...place, stdin: '{"name":"from stdin"}' });
    expect(code).toBe(0);
    const { tokens } = JSON.parse(await qspDone(["call", "nft.NftService/ListTokens"], place));
    expect(tokens.map(({ name }: { name: string }) => name)).toEqual(["from a file", "from stdin"]);
  });

  it("refuses a request that is not UTF-8, and a directory in its place", async () => {
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

  it("prints what is false, zero or empty too", async () => {
    const answer = await qspDone(["call", "vpn.VpnService/ListTunnels", "{}"], server.place());
    expect(JSON.parse(answer)).toEqual({ status: "success", tunnels: [], nextPageToken: "", totalSize: 0 });
  });

  it("sends a stream, a JSON document a line, and prints its one answer", async () => {
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

  it("prints a stream of answers, a JSON document a line, as they come", async () => {
    await server.client(BlockchainService).registerNode({});
    await server.client(BlockchainService).addBlock({ data: Buffer.from("x") });
    const run = await qsp(
      ["call", "blockchain.BlockchainService/WatchBlocks", "--timeout", "3"],
      server.place(),
    );
    expect(run.code).toBe(4);
    expect(lines(run.stdout).map(({ block }) => block)).toMatchObject([{ index: 0 }, { index: 1 }]);
  });

  it("makes a call with streams both ways, one answer a line", async () => {
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

  it("describes what a call takes and gives", async () => {
    const stdout = await qspDone(["call", "kms.KmsService/Sign", "--describe"], server.place());
    for (const part of [
      "POST /api/kms/sign",
      "  keyId: text",
      "  mu: bytes in base64",
      "    signature: bytes in base64",
    ])
      expect(stdout).toContain(part);
    const create = await qspDone(["call", "kms.KmsService/CreateKey", "--describe"], server.place());
    expect(create).toContain("  labels: map of text to text");
  });

  const mistakes = {
    "an unknown method, and suggests near ones": [["kms.KmsService/SingData"], "kms.KmsService/"],
    "a wrong case of letters": [["kms.KmsService/createkey"], "did you mean kms.KmsService/CreateKey"],
    "a method without its service": [["DualSign"], "dapp.DappService/DualSign"],
    "an unknown field": [["kms.KmsService/CreateKey", '{"alis":"x"}'], '"alis"'],
    "a value of a wrong type, naming the field": [["kms.KmsService/Sign", '{"keyId":7}'], "key_id"],
    "bytes that are no base64, naming the field": [["kms.KmsService/Sign", '{"data":"!"}'], "data"],
    "what is no JSON": [["kms.KmsService/Sign", "{"], "kms.SignRequest"],
    "a wrong line of a stream, by its number": [["kms.KmsService/SignStream", '\n{"chnk":""}'], "line 2"],
    "a file that is not there": [["kms.KmsService/Sign", "@none.json"], "none.json"],
    "no method": [[], "qsp call --list"],
  } as const satisfies Record<string, readonly [readonly string[], string]>;

  it.each(Object.entries(mistakes))("refuses %s, and calls nothing", async (_, [args, hint]) => {
    const { code, stdout, stderr } = await qsp(["call", ...args], server.place());
    expect({ code, stdout, lines: stderr.split("\n").length }).toEqual({ code: 2, stdout: "", lines: 2 });
    expect(stderr).toContain(hint);
  });
});

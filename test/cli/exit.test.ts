import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createSecureServer } from "node:http2";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import { join } from "node:path";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { describe, expect, it, onTestFinished } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { qsp, qspDone, runQsp, startQsp, timeout, useServer } from "./qsp.ts";

const server = useServer();

/** A port that closes every connection, or answers as it is told, for one test. */
async function listen(other: Server): Promise<number> {
  other.listen(0, "127.0.0.1");
  await once(other, "listening");
  onTestFinished(() => void other.close());
  return (other.address() as AddressInfo).port;
}

it("qsp --version and qsp version print the version of the package", async () => {
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"));
  for (const word of ["--version", "version"])
    expect(await qspDone([word], { cwd: makeTemporaryDirectory() })).toBe(`${version}\n`);
});

describe("qsp ends with", { timeout }, () => {
  const mistakes = {
    "no such verb of a group": [["kms", "crate"], "kms create"],
    "no such verb": [["backpu"], "backup"],
    "an option before the verb": [["--port", "0"], "qsp serve --port"],
    "an unknown setting": [["serve", "--prot", "80"], "--port"],
    "a bad setting of the operator": [["backup", "file", "--log-level", "loud"], "--log-level"],
    "a group without a verb": [["kms"], "kms needs one of its verbs: create, list"],
    "a verb that is in no group": [["kms", "sign", "-"], 'did you mean "sign"'],
    "an unknown option": [["kms", "list", "--al"], "--algorithm"],
    "a short option": [["kms", "list", "-j"], "-j"],
    "an option without its value": [["kms", "list", "--status"], "--status STATUS"],
    "an option whose value is another option": [["kms", "list", "--status", "--usage"], "--status STATUS"],
    "an option twice": [
      ["kms", "list", "--status", "ACTIVE", "--status", "ROTATED"],
      "--status occurs twice; use it once",
    ],
    "an algorithm before its standard": [["keygen", "x", "--algorithm", "Dilithium3"], '"ML-DSA-65"'],
    "a flag with a value": [["kms", "list", "--json=yes"], "--json takes no value"],
    "an operand too few": [["kms", "get"], "KEY is missing"],
    "an operand too many": [["kms", "get", "a", "b"], '"b"'],
    "a URL that is none": [["kms", "list", "--url", "localhost:8080"], "--url"],
    "a URL with a path": [["kms", "list", "--url", "http://127.0.0.1:8080/api"], "--url"],
    "a deadline of no time": [["kms", "list", "--timeout", "0"], "--timeout"],
    "a CA file that is not there": [["kms", "list", "--ca", "none.crt"], "none.crt"],
    "an unknown topic of the help": [["help", "nothing"], "nothing"],
  } as const satisfies Record<string, readonly [readonly string[], string]>;

  it.each(Object.entries(mistakes))("2 for %s, in one sentence that names it", async (_, [args, named]) => {
    const { code, stdout, stderr } = await qsp(args, server.place());
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/^qsp: [^\n]+\n$/);
    expect(stderr).toContain(named);
  });

  it("2 as a program as well", async () => {
    expect(await runQsp(["backpu"], server.place())).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^qsp: [^\n]*backup[^\n]*\n$/),
    });
  });

  it("the same code where it is run as npm installs it", async () => {
    expect((await runQsp(["kms", "get", "key-none"], { ...server.place(), isInstalled: true })).code).toBe(3);
  });

  it("3 where the server refuses, with the code and the reason", async () => {
    const { code, stdout, stderr } = await runQsp(["kms", "get", "key-none"], server.place());
    expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
    expect(stderr).toMatch(/^qsp: [^\n]+ \(NOT_FOUND, KEY_NOT_FOUND\); qsp kms list [^\n]+\n$/);
  });

  it("3 where the server refuses a field, and names it", async () => {
    const { code, stderr } = await qsp(["kms", "create", "--algorithm", "RSA"], server.place());
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr: expect.stringMatching(/^qsp: --algorithm: .*FIELD_INVALID/),
    });
  });

  it("4 where nobody listens", async () => {
    const tcp = createTcpServer();
    const port = await listen(tcp);
    tcp.close();
    const place = { ...server.place(), url: `http://127.0.0.1:${port}` };
    const { code, stderr } = await runQsp(["kms", "list"], place);
    expect({ code, stderr }).toEqual({
      code: 4,
      stderr: expect.stringMatching(/^qsp: [^\n]*ECONNREFUSED[^\n]*\n$/),
    });
  });

  it("4 where the connection breaks", async () => {
    const port = await listen(createTcpServer((socket) => socket.destroy()));
    expect(
      await runQsp(["kms", "list"], { ...server.place(), url: `http://127.0.0.1:${port}` }),
    ).toMatchObject({
      code: 4,
    });
  });

  it("4 where a web server of something else answers", async () => {
    const port = await listen(createHttpServer((_, response) => response.writeHead(404).end()));
    const place = { ...server.place(), url: `http://127.0.0.1:${port}` };
    expect(await runQsp(["health"], place)).toMatchObject({ code: 4, stdout: "" });
  });

  it("4 after the deadline where nobody answers", async () => {
    const port = await listen(createTcpServer((socket) => onTestFinished(() => void socket.destroy())));
    const place = { ...server.place(), url: `http://127.0.0.1:${port}` };
    expect(await runQsp(["kms", "list", "--timeout", "1"], place)).toMatchObject({ code: 4 });
  });

  it("130 when it is interrupted", async () => {
    const { child, end } = startQsp(["chain", "watch"], {
      ...server.place(),
      isInstalled: true,
      hasOwnGroup: true,
    });
    await once(child.stdout ?? child, "data");
    // As a terminal does: every process of the group is interrupted.
    process.kill(-(child.pid ?? 0), "SIGINT");
    expect(await end).toMatchObject({ code: 130, stderr: "" });
  });
});

describe("qsp over https", { timeout }, () => {
  /** A server with a certificate of a CA of its own. */
  async function secureServer() {
    const dataDir = makeTemporaryDirectory();
    const place = server.place();
    await qspDone(["ca", "init", "--data-dir", dataDir], place);
    await qspDone(["ca", "issue", "127.0.0.1", "--data-dir", dataDir], place);
    const tls = (name: string): Buffer => readFileSync(join(dataDir, "tls", name));
    const handler = connectNodeAdapter({
      routes: ({ service }) => void service(KmsService, { listKeys: () => ({ status: "success" }) }),
    });
    const secure = createSecureServer({ key: tls("gateway.key"), cert: tls("gateway.crt") }, handler);
    const port = await listen(secure as unknown as Server);
    return { place: { ...place, url: `https://127.0.0.1:${port}` }, ca: join(dataDir, "tls", "ca.crt") };
  }

  it("trusts the CA of --ca, and no other", async () => {
    const { place, ca } = await secureServer();
    expect(await runQsp(["kms", "list", "--ca", ca], place)).toMatchObject({
      code: 0,
      stdout: "There are no keys.\n",
    });
    const { code, stderr } = await runQsp(["kms", "list"], place);
    expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringContaining("certificate") });
  });
});

/**
 * The commands that `ca issue` prints for clients. test/server/tls.test.ts has the handshakes with its certificates.
 */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createSecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { isMissing, run } from "../../interop/tools.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import { makeAuthority, qsp, textOf } from "./authority.ts";

const timeout = 180_000;

/**
 * Starts a TLS 1.3 server; it answers "hello", or UNIMPLEMENTED to gRPC.
 *
 * @returns its port
 */
async function serve(dataDir: string): Promise<number> {
  const server = createSecureServer(
    {
      cert: textOf(dataDir, "gateway.crt"),
      key: textOf(dataDir, "gateway.key"),
      minVersion: "TLSv1.3",
      allowHTTP1: true,
    },
    ({ headers }, response) => {
      if (headers["content-type"] !== "application/grpc") return void response.end("hello");
      const answer = { ":status": 200, "content-type": "application/grpc", "grpc-status": "12" };
      response.stream.respond(answer, { endStream: true });
    },
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

describe("the commands that ca issue prints for clients", { timeout }, () => {
  /** Starts a server, and returns the printed command that begins so, adapted to its port. */
  async function makeLine(start: string, directory = "data"): Promise<{ line: string; port: number }> {
    const dataDir = await makeAuthority(directory);
    const text = await qsp(dataDir, "ca", "issue", "localhost", "127.0.0.1");
    const line = text.split("\n").find((each) => each.trim().startsWith(start));
    if (line === undefined) throw new Error(`no line ${start}`);
    const port = await serve(dataDir);
    return { line: line.trim().replace("localhost:8443", `localhost:${port}`), port };
  }

  const shell = (line: string) => run("sh", ["-c", line]);

  const curl = isMissing("curl") ? "curl, which is not installed" : "curl";
  it.skipIf(isMissing("curl"))(
    `let ${curl} trust the server, even if the directory has a space and an apostrophe`,
    async () => {
      const { line } = await makeLine("curl", "the operator's data");
      expect(await shell(line)).toMatchObject({ code: 0, stdout: "hello" });
    },
  );

  const grpcurl = isMissing("grpcurl") ? "grpcurl, which is not installed," : "grpcurl";
  it.skipIf(isMissing("grpcurl"))(`let ${grpcurl} trust the server`, async () => {
    const { line } = await makeLine("grpcurl");
    // To get this far, it accepted the certificate.
    expect((await shell(line)).stderr).toContain("server does not support the reflection API");
    const untrusting = await shell(line.replace(/-cacert \S+/, ""));
    expect(untrusting.stderr).toContain("certificate signed by unknown authority");
  });

  it("let Node trust the server", async () => {
    const { line, port } = await makeLine("NODE_EXTRA_CA_CERTS");
    const client = join(makeTemporaryDirectory(), "client.js");
    writeFileSync(client, `fetch("https://localhost:${port}").then((a) => a.text()).then(console.log)`);
    const pasted = line.replace("node client.js", `'${process.execPath}' ${client}`);
    expect(await shell(pasted)).toMatchObject({ code: 0, stdout: "hello\n" });
    expect((await shell(pasted.replace(/^\S+/, ""))).code).toBe(1);
  });
});

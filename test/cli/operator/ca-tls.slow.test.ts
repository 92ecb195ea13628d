/** Servers with certificates from `ca issue`, and clients that trust only the CA from `ca init`. */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createSecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { ConnectionOptions } from "node:tls";
import { describe, expect, it, onTestFinished } from "vitest";
import { isMissing, run } from "../../interop/tools.ts";
import { shakeHands as shakeHandsWith } from "../../server/tls-clients.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import { certificateIn, kinds, makeAuthority, makeGateway, qsp, textOf } from "./authority.ts";

const timeout = 180_000;

/**
 * Starts a TLS 1.3 server with these pairs; it answers "hello", or UNIMPLEMENTED to gRPC.
 *
 * @returns its port
 */
async function serve(dataDir: string, ...names: string[]): Promise<number> {
  const server = createSecureServer(
    {
      cert: names.map((name) => textOf(dataDir, `${name}.crt`)),
      key: names.map((name) => textOf(dataDir, `${name}.key`)),
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

/** How a handshake ended. */
interface Handshake {
  readonly protocol: string | null;
  /** From the certificate that the server presented. */
  readonly serialNumber: string | undefined;
}

/**
 * Connects, trusting one CA.
 *
 * @throws the TLS error if the server is not trusted
 */
async function shakeHands(port: number, ca: string, options?: ConnectionOptions): Promise<Handshake> {
  const socket = await shakeHandsWith({ port, ca }, options);
  return { protocol: socket.getProtocol(), serialNumber: socket.getPeerX509Certificate()?.serialNumber };
}

const failure = async (handshake: Promise<Handshake>): Promise<unknown> =>
  handshake.then(
    () => undefined,
    (error) => error.code,
  );

describe.each(kinds)("a server with a certificate from the $algorithm CA", { timeout }, ({ ca, gateway }) => {
  it("is trusted by clients that trust only this CA, over TLS 1.3", async () => {
    const dataDir = await makeGateway();
    const port = await serve(dataDir, gateway);
    const { serialNumber } = certificateIn(dataDir, gateway);
    expect(await shakeHands(port, textOf(dataDir, `${ca}.crt`))).toEqual({
      protocol: "TLSv1.3",
      serialNumber,
    });
  });

  it("is not trusted by clients of a different CA", async () => {
    const port = await serve(await makeGateway(), gateway);
    const other = await makeAuthority();
    // The other CA's key has a different identifier, so it does not count as the issuer.
    expect(await failure(shakeHands(port, textOf(other, `${ca}.crt`)))).toBe(
      "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    );
  });

  it("is not trusted under a name that the certificate does not contain", async () => {
    const dataDir = await makeGateway();
    const port = await serve(dataDir, gateway);
    const handshake = shakeHands(port, textOf(dataDir, `${ca}.crt`), { servername: "elsewhere.test" });
    expect(await failure(handshake)).toBe("ERR_TLS_CERT_ALTNAME_INVALID");
  });

  it("is trusted after a renewal", async () => {
    const dataDir = await makeGateway();
    await qsp(dataDir, "ca", "issue", "localhost");
    const port = await serve(dataDir, gateway);
    const { serialNumber } = certificateIn(dataDir, gateway);
    expect(await shakeHands(port, textOf(dataDir, `${ca}.crt`))).toMatchObject({ serialNumber });
  });
});

describe("a server with both certificates", { timeout }, () => {
  it.each([
    { ...kinds[0], sigalgs: "ecdsa_secp256r1_sha256" },
    { ...kinds[1], sigalgs: "mldsa65" },
  ])(
    "presents the $algorithm certificate to clients that accept no other",
    async ({ ca, gateway, sigalgs }) => {
      const dataDir = await makeGateway();
      const port = await serve(dataDir, "gateway", "gateway-mldsa");
      const { serialNumber } = certificateIn(dataDir, gateway);
      const handshake = shakeHands(port, textOf(dataDir, `${ca}.crt`), { sigalgs });
      expect(await handshake).toMatchObject({ serialNumber });
    },
  );
});

describe("the commands that ca issue prints for clients", { timeout }, () => {
  /** Starts a server, and returns the printed command that begins so, adapted to its port. */
  async function makeLine(start: string, directory = "data"): Promise<{ line: string; port: number }> {
    const dataDir = await makeAuthority(directory);
    const text = await qsp(dataDir, "ca", "issue", "localhost", "127.0.0.1");
    const line = text.split("\n").find((each) => each.trim().startsWith(start));
    if (line === undefined) throw new Error(`no line ${start}`);
    const port = await serve(dataDir, "gateway");
    return { line: line.trim().replace("localhost:8443", `localhost:${port}`), port };
  }

  const shell = (line: string) => run("sh", ["-c", line]);

  const curl = isMissing("curl") ? "curl, which is not installed" : "curl";
  it.skipIf(isMissing("curl"))(`let ${curl} trust the server`, async () => {
    const { line } = await makeLine("curl");
    expect(await shell(line)).toMatchObject({ code: 0, stdout: "hello" });
  });

  it.skipIf(isMissing("curl"))(
    `work for ${curl} even if the directory has a space and an apostrophe`,
    async () => {
      const { line } = await makeLine("curl", "the operator's data");
      expect(await shell(line)).toMatchObject({ code: 0, stdout: "hello" });
    },
  );

  it.skipIf(isMissing("curl"))(`are necessary: without them, ${curl} rejects the server`, async () => {
    const { line } = await makeLine("curl");
    // curl exit code 60: the certificate cannot be verified.
    expect(await shell(line.replace(/--cacert \S+/, ""))).toMatchObject({ code: 60, stdout: "" });
  });

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

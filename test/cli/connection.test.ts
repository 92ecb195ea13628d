/** Explanations of failed connections, and the CA that the client trusts. */
import { readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createSecureServer } from "node:http2";
import type { Server } from "node:net";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { describe, expect, it, onTestFinished } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { explainConnection } from "../../src/cli/connection/explain-connection.ts";
import { createAuthority, issueServerCertificate, openAuthority } from "../../src/crypto/x509.ts";
import { startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { listen, qsp, qspDone, type RunOptions, timeout } from "./qsp.ts";

/** A TLS server, and its CA file. */
async function secure({ names = ["127.0.0.1"], now = new Date() } = {}) {
  const cwd = makeTemporaryDirectory();
  const authority = createAuthority("ECDSA-P256", now);
  const request = { names, days: 30, now };
  const { certificatePem, secretKeyPem } = issueServerCertificate(openAuthority(authority), request);
  const handler = connectNodeAdapter({
    routes: ({ service }) => void service(KmsService, { listKeys: () => ({ status: "success" }) }),
  });
  const server = createSecureServer({ key: secretKeyPem, cert: certificatePem }, handler);
  const port = await listen(server as unknown as Server);
  writeFileSync(join(cwd, "ca.crt"), authority.certificatePem);
  return { cwd, port, url: `https://127.0.0.1:${port}` };
}

/** Makes a call that fails, and returns the message. */
async function failureOf(options: RunOptions, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await qsp(["kms", "list", ...args], options);
  expect([code, stdout, stderr]).toEqual([4, "", expect.stringMatching(/^qsp: [^\n]+\n$/)]);
  return stderr;
}

describe("connection failures", { timeout }, () => {
  it("explain https to a port without TLS", async () => {
    const port = await listen(createHttpServer((_, response) => response.end()));
    const text = await failureOf({ cwd: makeTemporaryDirectory(), url: `https://127.0.0.1:${port}` });
    expect(text).toContain(
      `answers without TLS (ERR_SSL_WRONG_VERSION_NUMBER); use --url http://127.0.0.1:${port}`,
    );
    expect(text).not.toContain("openssl");
  });

  it("explain http to a port with TLS", async () => {
    const { port, ...place } = await secure();
    const text = await failureOf({ ...place, url: `http://127.0.0.1:${port}` });
    expect(text).toContain(`expects TLS; use --url https://127.0.0.1:${port}`);
  });

  it("explain a certificate from an unknown CA, with and without --ca", async () => {
    const [place, other] = [await secure(), await secure()];
    expect(await failureOf(place)).toMatch(/not trusted \(\w+\); give .* with --ca FILE or QSP_CA/);
    const wrong = join(other.cwd, "ca.crt");
    expect(await failureOf(place, "--ca", wrong)).toContain(`the CA from --ca ${wrong} did not issue it`);
  });

  it.each([
    [
      "for different names",
      { names: ["keys.example"] },
      /for different names: DNS:keys\.example .*qsp ca issue/,
    ],
    ["that has expired", { now: new Date("2020-01-01") }, /has expired/],
    ["that is not valid yet", { now: new Date(Date.now() + 90 * 86_400_000) }, /not valid yet/],
  ])("explain a certificate %s", async (_what, certificate, explanation) => {
    expect(await failureOf(await secure(certificate), "--ca", "ca.crt")).toMatch(explanation);
  });

  it("explain a name without an address, and an unreachable machine", async () => {
    const explain = async (code: string) => {
      const cause = Object.assign(new Error("failed"), { code });
      const error = new ConnectError("failed", Code.Unavailable, undefined, undefined, cause);
      return (await explainConnection(error, { url: "https://keys.exmple:8443" }))?.message;
    };
    expect(await explain("ENOTFOUND")).toContain("the name keys.exmple has no address (ENOTFOUND)");
    expect(await explain("ETIMEDOUT")).toContain("no route to keys.exmple (ETIMEDOUT)");
    expect(await explain("SOMETHING")).toBeUndefined();
  });
});

describe("the client's CA", { timeout }, () => {
  it("comes from --ca, or else from QSP_CA", async () => {
    const place = await secure();
    const env = { QSP_CA: join(place.cwd, "ca.crt") };
    await qspDone(["kms", "list"], { ...place, env });
    const other = await secure();
    await failureOf({ ...place, env }, "--ca", join(other.cwd, "ca.crt"));
  });

  it("is refused if its file has no certificate, and the error names its origin", async () => {
    const place = await secure();
    writeFileSync(join(place.cwd, "wrong.crt"), "hello");
    const options = { ...place, env: { QSP_CA: join(place.cwd, "wrong.crt") } };
    const { code, stderr } = await qsp(["kms", "list", "--ca", "wrong.crt"], options);
    expect([code, stderr]).toEqual([2, expect.stringContaining("--ca wrong.crt: ")]);
    const { stderr: ofVariable } = await qsp(["kms", "list"], options);
    expect(ofVariable).toContain(`QSP_CA (${options.env.QSP_CA}): `);
  });

  it("is remembered by login for this server only, even if the file moves, until logout", async () => {
    const dataDir = makeTemporaryDirectory();
    const here = { cwd: dataDir };
    await qspDone(["ca", "init", "--data-dir", dataDir], here);
    await qspDone(["ca", "issue", "127.0.0.1", "localhost", "--data-dir", dataDir], here);
    const tls = (name: string): string => join(dataDir, "tls", name);
    const server = await startServer({
      dataDir,
      args: ["--tls-cert", tls("gateway.crt"), "--tls-key", tls("gateway.key")],
    });
    onTestFinished(() => void server.stop());
    const place = { cwd: dataDir, url: server.url };
    await qspDone(["login", "ada", "--ca", tls("ca.crt")], { ...place, stdin: "any password" });
    renameSync(tls("ca.crt"), tls("moved.crt"));
    await qspDone(["kms", "list"], place);
    const logins = join(dataDir, "state", "qsp", "logins.json");
    expect(statSync(logins).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(logins, "utf8"))[server.url].ca).toBe(
      readFileSync(tls("moved.crt"), "utf8"),
    );
    // Later logins need no --ca; the same server under a different name counts as a different server.
    await qspDone(["login", "bob"], { ...place, stdin: "any password" });
    await qspDone(["kms", "list"], place);
    await failureOf({ ...place, url: server.url.replace("127.0.0.1", "localhost") });
    await qspDone(["logout"], place);
    await failureOf(place);
  });
});

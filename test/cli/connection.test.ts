/** Explanations of failed connections, the CA that the client trusts, and the tokens that it sends. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createSecureServer, createServer } from "node:http2";
import type { Server } from "node:net";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { describe, expect, it, onTestFinished } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import type { ApiClient } from "../../src/cli/connection/api-client.ts";
import { createLoginTokens, readPassword } from "../../src/cli/connection/credentials.ts";
import { explainConnection } from "../../src/cli/connection/explain-connection.ts";
import { createAuthority, issueServerCertificate, openAuthority } from "../../src/crypto/x509.ts";
import { startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { useGuardedServer } from "./guarded-server.ts";
import { listen, qsp, qspDone, type RunOptions, timeout } from "./qsp.ts";

/** Answers `kms list` with an empty list. */
const handler = connectNodeAdapter({
  routes: ({ service }) => void service(KmsService, { listKeys: () => ({ status: "success" }) }),
});

/** A TLS server, and its CA file. */
async function secure({ names = ["127.0.0.1"], now = new Date() } = {}) {
  const cwd = makeTemporaryDirectory();
  const authority = createAuthority("ECDSA-P256", now);
  const request = { names, days: 30, now };
  const { certificatePem, secretKeyPem } = issueServerCertificate(openAuthority(authority), request);
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

const guarded = useGuardedServer();

it("a token from a login is not sent to other servers", async () => {
  const authorizations: (string | undefined)[] = [];
  const port = await listen(
    createServer((request, response) => {
      authorizations.push(request.headers.authorization);
      handler(request, response);
    }),
  );
  const elsewhere = { ...(await guarded.loggedIn()), url: `http://127.0.0.1:${port}` };
  await qspDone(["kms", "list"], elsewhere);
  await qspDone(["kms", "list"], { ...elsewhere, env: { QSP_TOKEN: "meant-for-it" } });
  expect(authorizations).toEqual([undefined, "Bearer meant-for-it"]);
});

it.each(["first-secret\nsecond", "sécret", "secret€"])(
  "a token that is not one line is not quoted",
  async (QSP_TOKEN) => {
    expect(await qsp(["kms", "list"], { ...guarded.place(), env: { QSP_TOKEN } })).toEqual({
      code: 2,
      stdout: "",
      stderr: "qsp: QSP_TOKEN does not contain a token on one line\n",
    });
  },
);

it("programs that log in at the same time keep all tokens", { timeout }, async () => {
  const state = makeTemporaryDirectory();
  const logins = JSON.stringify(new URL("../../src/cli/connection/logins.ts", import.meta.url).href);
  const keep = `
    const { keepLogin } = await import(${logins});
    process.stdout.write("ready");
    await new Promise((resolve) => process.stdin.once("data", resolve));
    for (let i = 0; i < 50; i += 1)
      keepLogin(\`http://\${process.pid}:\${i}\`, { token: "t", username: "ada", expiresAt: "2100-01-01T00:00:00Z" });
    process.exit();`;
  const programs = ["first", "second"].map(() =>
    spawn(process.execPath, ["--input-type=module", "-e", keep], {
      env: { ...process.env, XDG_STATE_HOME: state },
      stdio: ["pipe", "pipe", "inherit"],
    }),
  );
  await Promise.all(programs.map(({ stdout }) => once(stdout, "data")));
  const ends = programs.map((program) => once(program, "close"));
  for (const { stdin } of programs) stdin.end("go");
  expect((await Promise.all(ends)).map(([code]) => code)).toEqual([0, 0]);
  const kept = JSON.parse(readFileSync(join(state, "qsp", "logins.json"), "utf8"));
  expect(Object.keys(kept)).toHaveLength(100);
});

const hourMs = 3_600_000;

/** A token source with a fake server and clock. */
function makeSource() {
  const passwordFile = join(makeTemporaryDirectory(), "password");
  writeFileSync(passwordFile, "a long enough password\n");
  const state = {
    nowMs: 1_800_000_000_000,
    logins: 0,
    isRefusing: false,
    serverAheadMs: 0,
    passwords: [] as string[],
    answered: Promise.resolve(),
  };
  const server = {
    withToken: () => server,
    ask: async (_method: unknown, { password }: { password: string }) => {
      state.logins += 1;
      state.passwords.push(password);
      await state.answered;
      if (state.isRefusing) throw new ConnectError("the password is wrong", Code.Unauthenticated);
      const expiresAt = timestampFromMs(state.nowMs + state.serverAheadMs + hourMs);
      return create(PqcService.method.issueToken.output, { token: `token ${state.logins}`, expiresAt });
    },
  } as unknown as ApiClient;
  const tokens = createLoginTokens({ server, username: "k8s", passwordFile, now: () => state.nowMs });
  return { state, tokens, passwordFile };
}

describe("a plugin that logs in", () => {
  it("uses one token for many calls, and gets a new one before it expires", async () => {
    const { state, tokens } = makeSource();
    expect(await Promise.all([tokens.find({}), tokens.find({})])).toEqual(["token 1", "token 1"]);
    state.nowMs += 0.7 * hourMs;
    expect(await tokens.find({})).toBe("token 1");
    state.nowMs += 0.1 * hourMs;
    expect(await tokens.find({})).toBe("token 2");
    expect(state.logins).toBe(2);
  });

  it("logs in again if the server refuses its token, but not because of a call with an older token", async () => {
    const { tokens } = makeSource();
    const first = await tokens.find({});
    expect(tokens.drop(first)).toBe(true);
    expect(await tokens.find({})).toBe("token 2");
    tokens.drop(first);
    expect(await tokens.find({})).toBe("token 2");
  });

  it("retries a refused password at most every ten seconds, however many calls arrive", async () => {
    const { state, tokens, passwordFile } = makeSource();
    state.isRefusing = true;
    for (let i = 0; i < 5; i += 1) await expect(tokens.find({})).rejects.toThrow("the password is wrong");
    expect(state.logins).toBe(1);
    state.isRefusing = false;
    writeFileSync(passwordFile, "another password\n");
    state.nowMs += 10_001;
    expect(await tokens.find({})).toBe("token 2");
    expect(state.passwords).toEqual(["a long enough password", "another password"]);
  });

  it("retries even if the clock was set back, as at boot", async () => {
    const { state, tokens } = makeSource();
    state.isRefusing = true;
    await expect(tokens.find({})).rejects.toThrow("the password is wrong");
    state.isRefusing = false;
    state.nowMs -= 24 * hourMs;
    expect(await tokens.find({})).toBe("token 2");
  });

  it("completes a log-in that outlasts its call, and uses the token later", async () => {
    const { state, tokens } = makeSource();
    const { promise, resolve } = Promise.withResolvers<void>();
    state.answered = promise;
    await expect(tokens.find({ timeoutMs: 1 })).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    await expect(tokens.find({ timeoutMs: 1 })).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    resolve();
    expect(await tokens.find({ timeoutMs: 30_000 })).toBe("token 1");
    expect(state.logins).toBe(1);
  });

  it("uses a token for a minute even if the server's clock is far behind", async () => {
    const { state, tokens } = makeSource();
    state.serverAheadMs = -2 * hourMs;
    await tokens.find({});
    state.nowMs += 59_000;
    expect(await tokens.find({})).toBe("token 1");
  });
});

it("the password file is rejected if its first line is empty, and may have spaces in the password, and further lines", () => {
  const read = (content: string) => {
    const path = join(makeTemporaryDirectory(), "password");
    writeFileSync(path, content);
    return readPassword(path);
  };
  for (const content of ["", "\n", "\r\nlater"])
    expect(() => read(content)).toThrow("has an empty first line");
  expect(read(" a b \r\nc\n")).toBe(" a b ");
});

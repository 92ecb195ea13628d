/** `qsp k8s-kms` with a server that has users, as seen by an API server, an operator and another user. */
import { randomBytes } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { createUserStore } from "../../../src/identity/users.ts";
import { qsp, timeout } from "../../../test/cli/qsp.ts";
import { endAfterAll } from "../../../test/support/at-end.ts";
import { openTestStore } from "../../../test/support/open-store.ts";
import { hashCheaply, password } from "../../../test/support/passwords.ts";
import { refusal } from "../../../test/support/refusal.ts";
import { stateRefuses } from "../../../test/support/refusals.ts";
import { type RunningServer, startServer } from "../../../test/support/start-server.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { makeSocketPath, type PluginStart, type RunningPlugin, startPlugin } from "./start-plugin.ts";

const dataDir = makeTemporaryDirectory(afterAll);
const env = { QSP_AUTH: "token" };
const users = ["ada", "k8s", "eve"];
const passwordFile = join(makeTemporaryDirectory(afterAll), "password");
let server: RunningServer;
/** The key and the plugin of tests that need no other. */
let key: string;
let plugin: RunningPlugin;
const atEnd = endAfterAll();

beforeAll(async () => {
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  const provider = await createCryptoProvider("openssl");
  const store = await openTestStore(dataDir, provider);
  const stored = createUserStore(store);
  const passwordHash = hashCheaply(password);
  for (const name of users) await stored.add({ name, role: "user", passwordHash }, new Date());
  await store.close();
  await provider.close();
  server = await startServer({ dataDir, env });
  atEnd(async () => void (await server.stop()));
  key = await makeKey();
  plugin = await startAsAda(key, { socket: makeSocketPath(atEnd) }, async (end) => atEnd(end));
}, timeout);

/** Logs in without the plugin. */
async function tokenOf(username: string): Promise<string> {
  const pqc = createClient(
    PqcService,
    createGrpcTransport({ baseUrl: server.url, idleConnectionTimeoutMs: 100 }),
  );
  return (await pqc.issueToken({ username, password })).token;
}

/** The key service as a user sees it. */
async function kmsOf(username: string) {
  const token = await tokenOf(username);
  const transport = createGrpcTransport({
    baseUrl: server.url,
    idleConnectionTimeoutMs: 100,
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${token}`);
        return next(request);
      },
    ],
  });
  return createClient(KmsService, transport);
}

let count = 0;

/**
 * Creates one of ada's keys.
 *
 * @returns its name
 */
async function makeKey(): Promise<string> {
  count += 1;
  const name = `cluster/etcd-${count}`;
  await (await kmsOf("ada")).createKey({ name, algorithm: "X-Wing" });
  return `name/${name}`;
}

/** Starts a plugin that logs in as ada. */
function startAsAda(
  key: string,
  more: Partial<PluginStart> = {},
  atEnd?: (end: () => Promise<void>) => void,
): Promise<RunningPlugin> {
  const { args = [], ...rest } = more;
  const login = ["--username", "ada", "--password-file", passwordFile];
  return startPlugin({ url: server.url, key, args: [...login, ...args], ...rest }, atEnd);
}

describe("an API server", { timeout }, () => {
  // api-server.slow.test.ts encrypts with each other algorithm.
  it("decrypts what it encrypted, and gets the new key ID from Status and Encrypt after a rotation", async () => {
    const ada = await kmsOf("ada");
    const { client } = plugin;
    const plaintext = randomBytes(32);
    const first = await client.status({});
    expect([first.healthz, first.version]).toEqual(["ok", "v2"]);
    const before = await client.encrypt({ plaintext, uid: "1" });
    expect(before.keyId).toBe(first.keyId);
    await ada.rotateKey({ keyId: key });
    const { keyId, healthz } = await client.status({});
    const after = await client.encrypt({ plaintext });
    expect(healthz).toBe("ok");
    expect(keyId).not.toBe(before.keyId);
    expect(after.keyId).toBe(keyId);
    for (const { ciphertext, keyId, annotations } of [before, after])
      expect(Buffer.from((await client.decrypt({ ciphertext, keyId, annotations })).plaintext)).toEqual(
        plaintext,
      );
  });

  it("is notified that the key is disabled, and can neither encrypt nor decrypt until it is enabled", async () => {
    const ada = await kmsOf("ada");
    const { client } = plugin;
    const { ciphertext, keyId, annotations } = await client.encrypt({ plaintext: randomBytes(32) });
    expect(await client.status({})).toMatchObject({ healthz: "ok", keyId });
    await ada.disableKey({ keyId });
    expect(await client.status({})).toMatchObject({
      healthz: `key ${keyId} of ${key} is DISABLED; it must be ACTIVE (KEY_STATE_INVALID)`,
      keyId: "",
    });
    expect(await refusal(client.encrypt({ plaintext: randomBytes(32) }))).toEqual(stateRefuses);
    expect(await refusal(client.decrypt({ ciphertext, keyId, annotations }))).toEqual(stateRefuses);
    await ada.enableKey({ keyId });
    expect(await client.status({})).toMatchObject({ healthz: "ok", keyId });
    await client.decrypt({ ciphertext, keyId, annotations });
  });

  it("is notified of an unreachable key service, keeps the key ID, and continues when the service is back", async () => {
    const { client } = plugin;
    const { ciphertext, keyId, annotations } = await client.encrypt({ plaintext: randomBytes(32) });
    await client.status({});
    const { port } = new URL(server.url);
    await server.stop("SIGKILL");
    try {
      expect(await client.status({})).toMatchObject({
        healthz: expect.stringMatching(
          /^the key service at http:\S+ cannot be reached: .*KEY_SERVICE_UNAVAILABLE/,
        ),
        keyId,
      });
      const gone = { code: "Unavailable", reason: "KEY_SERVICE_UNAVAILABLE" };
      expect(await refusal(client.encrypt({ plaintext: randomBytes(32) }))).toEqual(gone);
      expect(await refusal(client.decrypt({ ciphertext, keyId, annotations }))).toEqual(gone);
    } finally {
      server = await startServer({ dataDir, env, args: ["--port", port] });
    }
    expect(await client.status({})).toMatchObject({ healthz: "ok", keyId });
    await client.decrypt({ ciphertext, keyId, annotations });
  });

  it("is notified within its deadline that the key service does not answer, and reconnects afterwards", async () => {
    const { client } = await startAsAda(key, { args: ["--timeout", "2"] });
    const { keyId } = await client.status({});
    server.process.kill("SIGSTOP");
    try {
      // Its own limit ends the call to the key service earlier.
      const answer = await client.status({}, { timeoutMs: 40_000 });
      expect(answer).toMatchObject({ healthz: expect.stringContaining("did not answer in time"), keyId });
    } finally {
      server.process.kill("SIGCONT");
    }
    expect(await client.status({})).toMatchObject({ healthz: "ok", keyId });
  });
});

describe("Decrypt rejects", { timeout }, () => {
  const unknown = { code: "NotFound", reason: "KEY_NOT_FOUND" };

  it("the key ID of a different key of the same user, even if it never encrypted for the plugin", async () => {
    const { client } = plugin;
    const other = (await (await kmsOf("ada")).getKey({ keyId: await makeKey() })).result?.keyId ?? "";
    const { ciphertext, annotations } = await client.encrypt({ plaintext: randomBytes(32) });
    for (const keyId of [other, "key-00000000-0000-4000-8000-000000000000"])
      expect(await refusal(client.decrypt({ ciphertext, keyId, annotations }))).toEqual(unknown);
  });

  it("the key ID of another user's key with the same name", async () => {
    const eve = await kmsOf("eve");
    const result = await eve.createKey({ name: key.replace("name/", ""), algorithm: "X-Wing" });
    await eve.createGrant({
      keyId: key,
      grantee: "ada",
      operations: ["GET_KEY", "ENCAPSULATE", "DECAPSULATE"],
    });
    const { client } = plugin;
    const { ciphertext, annotations } = await client.encrypt({ plaintext: randomBytes(32) });
    const keyId = result.result?.keyId ?? "";
    expect(await refusal(client.decrypt({ ciphertext, keyId, annotations }))).toEqual(unknown);
  });
});

describe("a user with a grant", { timeout }, () => {
  it("encrypts and decrypts with another user's key until the grant ends", async () => {
    const ada = await kmsOf("ada");
    const { grant } = await ada.createGrant({
      keyId: key,
      grantee: "k8s",
      operations: ["GET_KEY", "ENCAPSULATE", "DECAPSULATE"],
    });
    const args = ["--username", "k8s", "--password-file", passwordFile];
    const { client } = await startPlugin({ url: server.url, key: `user/ada/${key}`, args });
    const { ciphertext, keyId, annotations } = await client.encrypt({ plaintext: randomBytes(32) });
    await client.decrypt({ ciphertext, keyId, annotations });
    await ada.revokeGrant({ grantId: grant?.grantId ?? "" });
    expect(await refusal(client.decrypt({ ciphertext, keyId, annotations }))).toMatchObject({
      code: "NotFound",
    });
    expect(await client.status({})).toMatchObject({
      keyId: "",
      healthz: expect.stringContaining("KEY_NOT_FOUND"),
    });
  });
});

describe("the plugin's token", { timeout }, () => {
  it("comes from --token-file, which is read again for each call", async () => {
    const file = join(makeTemporaryDirectory(), "token");
    writeFileSync(file, "expired");
    const { client } = await startPlugin({ url: server.url, key, args: ["--token-file", file] });
    expect(await client.status({})).toMatchObject({
      keyId: "",
      healthz: expect.stringContaining("TOKEN_MALFORMED"),
    });
    expect(await refusal(client.encrypt({ plaintext: randomBytes(32) }))).toEqual({
      code: "Unauthenticated",
      reason: "TOKEN_MALFORMED",
    });
    writeFileSync(file, await tokenOf("ada"));
    const { keyId } = await client.status({});
    expect(keyId).toMatch(/^key-/);
    writeFileSync(file, "");
    expect(await client.status({})).toMatchObject({
      keyId,
      healthz: `${file} does not contain a token on one line (KEY_SERVICE_UNAVAILABLE)`,
    });
  });

  it("is useless for other servers: a wrong password only shows in Status", async () => {
    const file = join(makeTemporaryDirectory(), "password");
    writeFileSync(file, "not the password of ada\n");
    const args = ["--username", "ada", "--password-file", file];
    const { client } = await startPlugin({ url: server.url, key, args });
    expect(await client.status({})).toMatchObject({
      keyId: "",
      healthz: expect.stringContaining("LOGIN_FAILED"),
    });
  });
});

describe("the log", { timeout }, () => {
  it("has a JSON line with the UID of each call, and no secrets", async () => {
    const { client, stop } = await startAsAda(key, { args: ["--log-level", "debug"] });
    const plaintext = Buffer.from("the seed of the cluster, a secret");
    const { ciphertext, keyId, annotations } = await client.encrypt({ plaintext, uid: "uid-of-encrypt" });
    await client.decrypt({ ciphertext, keyId, annotations, uid: "uid-of-decrypt\n{}" });
    await refusal(client.decrypt({ ciphertext, keyId, uid: "u".repeat(10_000) }));
    await client.status({});
    const { stderr, stdout } = await stop();
    const lines = stderr
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ call: "Encrypt", uid: "uid-of-encrypt", keyId, msg: "done" }),
        expect.objectContaining({ call: "Decrypt", uid: "uid-of-decrypt\n{}", keyId, msg: "done" }),
        expect.objectContaining({
          call: "Decrypt",
          uid: "u".repeat(100),
          code: "InvalidArgument",
          reason: "FIELD_INVALID",
        }),
        expect.objectContaining({ healthz: "ok", keyId }),
      ]),
    );
    const secrets = [
      plaintext.toString(),
      plaintext.toString("base64"),
      plaintext.toString("hex"),
      password,
      "eyJ",
    ];
    for (const secret of secrets) expect(stderr + stdout).not.toContain(secret);
  });
});

describe("a caller that does not speak gRPC", { timeout }, () => {
  it("is not served, and does not affect others", async () => {
    const { client, socket } = plugin;
    for (const bytes of ["GET / HTTP/1.1\r\nhost: x\r\n\r\n", "\0".repeat(1000), ""]) {
      const connection = net.connect(socket);
      connection.on("error", () => {});
      connection.end(bytes);
      await new Promise((resolve) => connection.resume().once("close", resolve));
    }
    expect(await client.status({})).toMatchObject({ healthz: "ok" });
  });
});

describe("the operator", { timeout }, () => {
  it("stops the plugin with SIGTERM: running calls finish, the socket is removed, and the exit code is 0", async () => {
    const plugin = await startAsAda(key, { args: ["--timeout", "120"] });
    await plugin.client.status({});
    server.process.kill("SIGSTOP");
    const running = plugin.client.encrypt({ plaintext: randomBytes(32) });
    // A later call on the same connection was answered, so this call has reached the plugin.
    await refusal(plugin.client.encrypt({ plaintext: new Uint8Array(2000) }));
    plugin.signal("SIGTERM");
    await untilLogged(plugin, "stopping");
    server.process.kill("SIGCONT");
    expect((await running).keyId).toMatch(/^key-/);
    expect((await plugin.end).code).toBe(0);
    expect(existsSync(plugin.socket)).toBe(false);
  });

  it("can start the plugin before the key service", async () => {
    const args = ["--username", "ada", "--password-file", passwordFile];
    const { client } = await startPlugin({ url: "http://127.0.0.1:1", args });
    expect(await client.status({})).toMatchObject({
      version: "v2",
      keyId: "",
      healthz: expect.stringContaining("http://127.0.0.1:1 cannot be reached"),
    });
  });

  it("can read call counts at /metrics on the loopback interface", async () => {
    const plugin = await startAsAda(key, { args: ["--metrics-port", "0"] });
    await plugin.client.status({});
    await refusal(plugin.client.encrypt({ plaintext: new Uint8Array(1000) }));
    const [url = ""] = /http:\/\/127\.0\.0\.1:\d+\/metrics/.exec(plugin.printed().stdout) ?? [];
    const text = await (await fetch(url)).text();
    expect(text).toContain('qsp_calls_total{method="v2.KeyManagementService/Status",code="OK"} 1');
    expect(text).toContain(
      'qsp_calls_total{method="v2.KeyManagementService/Encrypt",code="InvalidArgument"} 1',
    );
    expect(text).toContain('qsp_call_duration_seconds_count{method="v2.KeyManagementService/Status"} 1');
    expect((await fetch(url.replace("/metrics", "/"))).status).toBe(404);
    expect((await fetch(url, { method: "POST" })).status).toBe(404);
  });

  const socket = "/run/qsp-no-such-directory/kms.sock";
  it.each<[string, readonly string[], string]>([
    ["no socket", ["--key", "name/etcd"], "--socket is missing"],
    ["no key", ["--socket", socket], "--key is missing"],
    ["a key ID", ["--socket", socket, "--key", "key-1"], "is not a key name; use name/etcd"],
    ["a key version", ["--socket", socket, "--key", "name/etcd/3"], "names a single version"],
    ["an empty user name", ["--socket", socket, "--key", "user//name/etcd"], "is not a key name"],
    ["a username alone", ["--socket", socket, "--key", "name/e", "--username", "a"], "go together"],
    [
      "two token sources",
      ["--socket", socket, "--key", "name/e", "--username", "a", "--password-file", "p", "--token-file", "t"],
      "cannot be combined",
    ],
    [
      "a missing password file",
      ["--socket", socket, "--key", "name/e", "--username", "a", "--password-file", "/none"],
      "/none does not exist",
    ],
    ["a missing token file", ["--socket", socket, "--key", "name/e", "--token-file", "/none"], "/none does"],
    ["a missing directory", ["--socket", socket, "--key", "name/e"], "/run/qsp-no-such-directory does not"],
    ["an unknown group", ["--socket", socket, "--key", "name/e", "--group", "?"], "is not a group"],
    [
      "an unknown log level",
      ["--socket", socket, "--key", "name/e", "--log-level", "all"],
      "is unknown; use one of debug",
    ],
    ["port 65536", ["--socket", socket, "--key", "name/e", "--metrics-port", "65536"], "from 0 to 65535"],
  ])("gets an error message about %s", async (_, args, sentence) => {
    const run = await qsp(["k8s-kms", ...args], { cwd: makeTemporaryDirectory(), url: server.url });
    expect(run).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(sentence) });
  });

  it("must use https for a key service on a different machine, with or without a token", async () => {
    const run = await qsp(["k8s-kms", "--socket", socket, "--key", "name/etcd"], {
      cwd: makeTemporaryDirectory(),
      url: "http://192.0.2.1:8080",
    });
    expect(run).toMatchObject({ code: 2, stderr: expect.stringContaining("use https") });
  });

  function untilLogged(plugin: RunningPlugin, text: string): Promise<void> {
    return expect.poll(() => plugin.printed().stderr).toContain(text);
  }
});

/** `qsp k8s-kms` with a server that has users, as seen by an API server, an operator and another user. */
import { randomBytes, randomUUID } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { EncryptResponse } from "#gen/kubernetes/kms_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { addUsers } from "../../../test/cli/guarded-server.ts";
import { qsp, timeout } from "../../../test/cli/qsp.ts";
import { present } from "../../../test/services/answers.ts";
import { connectWithToken } from "../../../test/services/app-under-test.ts";
import { endAfterAll } from "../../../test/support/at-end.ts";
import { password } from "../../../test/support/passwords.ts";
import { outcomeOf, refusal } from "../../../test/support/refusal.ts";
import { type RunningServer, startServer } from "../../../test/support/start-server.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { makeSocketPath, type RunningPlugin, startPlugin } from "./start-plugin.ts";

const dataDir = makeTemporaryDirectory(afterAll);
const env = { QSP_AUTH: "token" };
const passwordFile = join(makeTemporaryDirectory(afterAll), "password");
const asAda = ["--username", "ada", "--password-file", passwordFile];
const operations = ["GET_KEY", "ENCAPSULATE", "DECAPSULATE"];
let server: RunningServer;
/** The key and the plugin of tests that need no other. */
let key: string;
let plugin: RunningPlugin;
const atEnd = endAfterAll();

beforeAll(async () => {
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  await addUsers(dataDir, { ada: "user", k8s: "user", eve: "user" });
  server = await startServer({ dataDir, env });
  atEnd(async () => void (await server.stop()));
  const name = `cluster/${randomUUID()}`;
  await (await kmsOf("ada")).createKey({ name, algorithm: "X-Wing" });
  key = `name/${name}`;
  const socket = makeSocketPath(atEnd);
  plugin = await startPlugin({ url: server.url, key, args: asAda, socket }, async (end) => atEnd(end));
}, timeout);

/** Logs in without the plugin. */
async function tokenOf(username: string): Promise<string> {
  const transport = createGrpcTransport({ baseUrl: server.url, idleConnectionTimeoutMs: 100 });
  return (await createClient(PqcService, transport).issueToken({ username, password })).token;
}

/** The key service as a user sees it. */
async function kmsOf(username: string) {
  return createClient(KmsService, connectWithToken(server.url, await tokenOf(username)));
}

/** Starts a plugin that logs in as ada, unless its arguments say otherwise. */
const start = (args: readonly string[], login = asAda) =>
  startPlugin({ url: server.url, key, args: [...login, ...args] });

const plaintext = randomBytes(32);
const encrypt = ({ client } = plugin) => client.encrypt({ plaintext });
const readStatus = ({ client } = plugin) => client.status({});

/** Decrypts what was encrypted, and compares it with the plaintext. */
async function decrypt({ ciphertext, keyId, annotations }: EncryptResponse, { client } = plugin) {
  const { plaintext: found } = await client.decrypt({ ciphertext, keyId, annotations });
  expect(Buffer.from(found)).toEqual(plaintext);
}

/** A health that begins with no key, and contains a text. */
const noKey = (text: string) => ({ keyId: "", healthz: expect.stringContaining(text) });

describe("an API server", { timeout }, () => {
  // api-server.slow.test.ts encrypts with each other algorithm.
  it("decrypts what it encrypted, and gets the new key ID from Status and Encrypt after a rotation", async () => {
    const first = await readStatus();
    expect(first).toMatchObject({ healthz: "ok", version: "v2" });
    const before = await encrypt();
    expect(before.keyId).toBe(first.keyId);
    await (await kmsOf("ada")).rotateKey({ keyId: key });
    const { keyId, healthz } = await readStatus();
    const after = await encrypt();
    expect([healthz, keyId === before.keyId, after.keyId]).toEqual(["ok", false, keyId]);
    await decrypt(before);
    await decrypt(after);
  });

  it("is notified that the key is disabled, and can neither encrypt nor decrypt until it is enabled", async () => {
    const ada = await kmsOf("ada");
    const encrypted = await encrypt();
    const { keyId } = encrypted;
    expect(await readStatus()).toMatchObject({ healthz: "ok", keyId });
    await ada.disableKey({ keyId });
    expect(await readStatus()).toMatchObject({
      healthz: `key ${keyId} of ${key} is DISABLED; it must be ACTIVE (KEY_STATE_INVALID)`,
      keyId: "",
    });
    expect(await outcomeOf(encrypt())).toBe("KEY_STATE_INVALID");
    expect(await outcomeOf(decrypt(encrypted))).toBe("KEY_STATE_INVALID");
    await ada.enableKey({ keyId });
    expect(await readStatus()).toMatchObject({ healthz: "ok", keyId });
    await decrypt(encrypted);
  });

  it("is notified of an unreachable key service, keeps the key ID, and continues when the service is back", async () => {
    const encrypted = await encrypt();
    const { keyId } = encrypted;
    await readStatus();
    const { port } = new URL(server.url);
    await server.stop("SIGKILL");
    try {
      const healthz = /^the key service at http:\S+ cannot be reached: .*KEY_SERVICE_UNAVAILABLE/;
      expect(await readStatus()).toMatchObject({ healthz: expect.stringMatching(healthz), keyId });
      expect(await outcomeOf(encrypt())).toBe("KEY_SERVICE_UNAVAILABLE");
      expect(await outcomeOf(decrypt(encrypted))).toBe("KEY_SERVICE_UNAVAILABLE");
    } finally {
      server = await startServer({ dataDir, env, args: ["--port", port] });
    }
    expect(await readStatus()).toMatchObject({ healthz: "ok", keyId });
    await decrypt(encrypted);
  });

  it("is notified within its deadline that the key service does not answer, and reconnects afterwards", async () => {
    const { client } = await start(["--timeout", "2"]);
    const { keyId } = await client.status({});
    server.process.kill("SIGSTOP");
    try {
      // Its own limit ends the call to the key service earlier.
      const answer = await client.status({}, { timeoutMs: 40_000 });
      expect(answer).toMatchObject({ healthz: expect.stringContaining("did not answer in time"), keyId });
    } finally {
      server.process.kill("SIGCONT");
    }
    // On a busy machine, the server may need longer than the plugin's limit.
    await expect.poll(() => client.status({})).toMatchObject({ healthz: "ok", keyId });
  });
});

describe("Decrypt rejects", { timeout }, () => {
  it("the key IDs of other keys of the same user, and of another user's key with the same name", async () => {
    const [ada, eve] = [await kmsOf("ada"), await kmsOf("eve")];
    const own = present((await ada.createKey({ algorithm: "X-Wing", name: "other" })).result).keyId;
    const name = key.replace("name/", "");
    const foreign = present((await eve.createKey({ name, algorithm: "X-Wing" })).result).keyId;
    await eve.createGrant({ keyId: key, grantee: "ada", operations });
    const encrypted = await encrypt();
    for (const keyId of [own, "key-00000000-0000-4000-8000-000000000000", foreign])
      expect(await outcomeOf(decrypt({ ...encrypted, keyId }))).toBe("KEY_NOT_FOUND");
  });
});

describe("a user with a grant", { timeout }, () => {
  it("encrypts and decrypts with another user's key until the grant ends", async () => {
    const ada = await kmsOf("ada");
    const { grant } = await ada.createGrant({ keyId: key, grantee: "k8s", operations });
    const args = ["--username", "k8s", "--password-file", passwordFile];
    const plugin = await startPlugin({ url: server.url, key: `user/ada/${key}`, args });
    const encrypted = await encrypt(plugin);
    await decrypt(encrypted, plugin);
    await ada.revokeGrant({ grantId: present(grant).grantId });
    expect((await refusal(decrypt(encrypted, plugin))).code).toBe("NotFound");
    expect(await readStatus(plugin)).toMatchObject(noKey("KEY_NOT_FOUND"));
  });
});

describe("the plugin's token", { timeout }, () => {
  it("comes from --token-file, which is read again for each call", async () => {
    const file = join(makeTemporaryDirectory(), "token");
    writeFileSync(file, "expired");
    const plugin = await start(["--token-file", file], []);
    expect(await readStatus(plugin)).toMatchObject(noKey("TOKEN_MALFORMED"));
    expect(await outcomeOf(encrypt(plugin))).toBe("TOKEN_MALFORMED");
    writeFileSync(file, await tokenOf("ada"));
    const { keyId } = await readStatus(plugin);
    expect(keyId).toMatch(/^key-/);
    writeFileSync(file, "");
    const healthz = `${file} does not contain a token on one line (KEY_SERVICE_UNAVAILABLE)`;
    expect(await readStatus(plugin)).toMatchObject({ keyId, healthz });
  });

  it("is useless for other servers: a wrong password only shows in Status", async () => {
    const file = join(makeTemporaryDirectory(), "password");
    writeFileSync(file, "not the password of ada\n");
    const plugin = await start(["--username", "ada", "--password-file", file], []);
    expect(await readStatus(plugin)).toMatchObject(noKey("LOGIN_FAILED"));
  });
});

describe("the log", { timeout }, () => {
  it("has a JSON line with the UID of each call, and no secrets", async () => {
    const { client, stop } = await start(["--log-level", "debug"]);
    const plaintext = Buffer.from("the seed of the cluster, a secret");
    const { ciphertext, keyId, annotations } = await client.encrypt({ plaintext, uid: "uid-of-encrypt" });
    await client.decrypt({ ciphertext, keyId, annotations, uid: "uid-of-decrypt\n{}" });
    await refusal(client.decrypt({ ciphertext, keyId, uid: "u".repeat(10_000) }));
    await client.status({});
    const { stderr, stdout } = await stop();
    const lines = stderr.trimEnd().split("\n");
    const logged = [
      { call: "Encrypt", uid: "uid-of-encrypt", keyId, msg: "done" },
      { call: "Decrypt", uid: "uid-of-decrypt\n{}", keyId, msg: "done" },
      { call: "Decrypt", uid: "u".repeat(100), code: "InvalidArgument", reason: "FIELD_INVALID" },
      { healthz: "ok", keyId },
    ];
    expect(lines.map((line) => JSON.parse(line))).toEqual(
      expect.arrayContaining(logged.map((line) => expect.objectContaining(line))),
    );
    const forms = (["utf8", "base64", "hex"] as const).map((encoding) => plaintext.toString(encoding));
    for (const secret of [...forms, password, "eyJ"]) expect(stderr + stdout).not.toContain(secret);
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
    const plugin = await start(["--timeout", "120"]);
    await plugin.client.status({});
    server.process.kill("SIGSTOP");
    const running = encrypt(plugin);
    // A later call on the same connection was answered, so this call has reached the plugin.
    await refusal(plugin.client.encrypt({ plaintext: new Uint8Array(2000) }));
    plugin.signal("SIGTERM");
    await expect.poll(() => plugin.printed.stderr).toContain("stopping");
    server.process.kill("SIGCONT");
    expect((await running).keyId).toMatch(/^key-/);
    expect((await plugin.end).code).toBe(0);
    expect(existsSync(plugin.socket)).toBe(false);
  });

  it("can start the plugin before the key service", async () => {
    const plugin = await startPlugin({ url: "http://127.0.0.1:1", args: asAda });
    expect(await readStatus(plugin)).toMatchObject(noKey("http://127.0.0.1:1 cannot be reached"));
  });

  it("can read call counts at /metrics on the loopback interface", async () => {
    const plugin = await start(["--metrics-port", "0"]);
    await plugin.client.status({});
    await refusal(plugin.client.encrypt({ plaintext: new Uint8Array(1000) }));
    const [url = ""] = /http:\/\/127\.0\.0\.1:\d+\/metrics/.exec(plugin.printed.stdout) ?? [];
    const text = await (await fetch(url)).text();
    const service = "v2.KeyManagementService";
    for (const sample of [
      `qsp_calls_total{method="${service}/Status",code="OK"} 1`,
      `qsp_calls_total{method="${service}/Encrypt",code="InvalidArgument"} 1`,
      `qsp_call_duration_seconds_count{method="${service}/Status"} 1`,
    ])
      expect(text).toContain(sample);
    expect((await fetch(url.replace("/metrics", "/"))).status).toBe(404);
    expect((await fetch(url, { method: "POST" })).status).toBe(404);
  });

  const socket = "--socket /run/qsp-no-such-directory/kms.sock";
  const named = `${socket} --key name/e`;
  it.each([
    ["no socket", "--key name/etcd", "--socket is missing"],
    ["no key", socket, "--key is missing"],
    ["a key ID", `${socket} --key key-1`, "is not a key name; use name/etcd"],
    ["a key version", `${socket} --key name/etcd/3`, "names a single version"],
    ["an empty user name", `${socket} --key user//name/etcd`, "is not a key name"],
    ["a username alone", `${named} --username a`, "go together"],
    ["two token sources", `${named} --username a --password-file p --token-file t`, "cannot be combined"],
    ["a missing password file", `${named} --username a --password-file /none`, "/none does not exist"],
    ["a missing token file", `${named} --token-file /none`, "/none does"],
    ["a missing directory", named, "/run/qsp-no-such-directory does not"],
    ["an unknown group", `${named} --group ?`, "is not a group"],
    ["an unknown log level", `${named} --log-level all`, "is unknown; use one of debug"],
    ["port 65536", `${named} --metrics-port 65536`, "from 0 to 65535"],
    // With or without a token.
    ["a key service on a different machine without TLS", named, "use https", "http://192.0.2.1:8080"],
  ])("gets an error message about %s", async (_, args, sentence, url = server.url) => {
    const run = await qsp(["k8s-kms", ...args.split(" ")], { cwd: makeTemporaryDirectory(), url });
    expect(run).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(sentence) });
  });
});

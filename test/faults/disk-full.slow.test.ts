import { existsSync, readdirSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { statement } from "../../src/database/connection.ts";
import { openSqliteWriter } from "../../src/database/sqlite.ts";
import { callRest, present } from "../services/answers.ts";
import { endAfterAll } from "../support/at-end.ts";
import { putSecrets, writeEntries } from "../support/entries.ts";
import { inheritedEnvironment } from "../support/environment.ts";
import { openTestStore } from "../support/open-store.ts";
import { password } from "../support/passwords.ts";
import { outcomeOf, refusal } from "../support/refusal.ts";
import { runHere } from "../support/run-here.ts";
import { runToEnd } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { type KmsClient, type KmsServer, startKmsServer } from "./kms-server.ts";
import { judgeLives } from "./life-judge.ts";
import { createKey, startLoad } from "./life-load.ts";
import { createLives, type Lives, listKinds } from "./life-model.ts";
import { createRandom } from "./mutations.ts";
import { describeSmallDisks, makeSmallDisk, waitForReserve, writeForeignFile } from "./small-disk.ts";

const timeout = 180_000;
const full = { code: "ResourceExhausted", reason: "STORE_FULL" };
const data = Buffer.from("message");
const oneSentence = /^qsp: [^\n]*disk[^\n]* is full[^\n]*\n$/;

/** A store on a small disk, and the record of what its callers know. */
interface SmallStore {
  readonly directory: string;
  readonly server: KmsServer;
  readonly lives: Lives;
}

describeSmallDisks("a store on a full disk", () => {
  it.each(process.env.QSP_TEST_LONG === "1" ? [2, 12] : [2])(
    "rejects new keys with STORE_FULL when they fill the disk, and accepts more once space is freed (disk of %i MiB)",
    { timeout },
    async (mebibytes) => {
      const directory = makeSmallDisk(`${mebibytes}m`);
      const foreign = writeForeignFile(directory, (mebibytes / 4) * 1024 * 1024);
      const store = await openStore(directory);
      await createUntilRefused(store);
      expect(listKinds(store.lives)).toEqual([full]);
      foreign.remove();
      await expectGoesOn(store);
    },
  );

  it("rejects writes while a foreign file fills the disk under load, and recovers when it is removed", {
    timeout,
  }, async () => {
    const store = await openStore(makeSmallDisk("4m"));
    const { load, foreign } = await fillUnderLoad(store);
    foreign.remove();
    await load.answers(50);
    await load.stop();
    expect(listKinds(store.lives)).toEqual([full]);
    await expectGoesOn(store);
  });

  it("keeps acknowledged writes when the program is killed with -9, lets it start, and write once space is freed", {
    timeout,
  }, async () => {
    const store = await openStore(makeSmallDisk("4m"));
    const { load, foreign } = await fillUnderLoad(store);
    await Promise.all([store.server.stop("SIGKILL"), load.stop()]);
    const server = await startKmsServer({ dataDir: store.directory });
    const create = () => createKey({ lives: store.lives, kms: server.kms }, `late-${store.lives.lines.size}`);
    // The write-ahead log of the killed program may have left room for a few keys.
    await vi.waitUntil(async () => !(await create()), timeout);
    expect(await refusal(server.kms.createKey({}))).toEqual(full);
    await expect.poll(() => server.kms.getHealth({})).toMatchObject({ serviceStatus: "DOWN" });
    foreign.remove();
    await expectGoesOn({ ...store, server });
  });

  // With no free space, SQLite cannot write the file; with 8 KiB, it cannot map its log index; with more, it cannot migrate.
  it.each([0, 8192, 40_960])(
    "cannot be created, which the program reports in one line (%i bytes free)",
    { timeout },
    async (bytes) => {
      const directory = makeSmallDisk("1m");
      writeForeignFile(directory, 1024 * 1024 - bytes);
      // A service manager restarts the program after this exit code, but not after code 2.
      expect(await runToEnd(["serve", "--port", "0", "--data-dir", directory])).toMatchObject({
        code: 4,
        stderr: `qsp: the disk of ${join(directory, "qsp.db")} is full; free some space on it\n`,
      });
    },
  );

  it("cannot be created without space for the master key", { timeout }, async () => {
    const [directory, dataDir] = [makeSmallDisk("64k"), makeTemporaryDirectory()];
    writeForeignFile(directory);
    const masterKey = join(directory, "master.key");
    const args = ["serve", "--port", "0", "--data-dir", dataDir, "--master-key-file", masterKey];
    expect(await runToEnd(args)).toMatchObject({
      code: 4,
      stderr: `qsp: the disk of ${masterKey} is full; free some space on it\n`,
    });
  });
});

describeSmallDisks("scrubbing on a full disk", () => {
  it("fails, and later writes still wait for other programs", { timeout }, async () => {
    const directory = makeSmallDisk("1m");
    const path = join(directory, "rows.db");
    writeFileSync(path, "");
    const writer = openSqliteWriter(path);
    onTestFinished(() => writer.close());
    await writer.run([statement("create table rows (content blob)")]);
    await writer.run([statement("insert into rows values (randomblob(300000))")]);
    writeForeignFile(directory);
    await expect(writer.scrub()).rejects.toMatchObject({ code: "FULL" });
    expect(await writer.run([statement("pragma busy_timeout")])).toEqual([{ rows: [{ timeout: 5000 }] }]);
  });

  it("is repeated after a later write", { timeout }, async () => {
    const directory = makeSmallDisk("8m");
    const provider = await createCryptoProvider("openssl");
    const store = await openTestStore(directory, provider);
    onTestFinished(async () => {
      await store.close();
      await provider.close();
    });
    await putSecrets(store, [["things/1", "secret"]]);
    const isScrubbed = () => statSync(join(directory, "qsp.db-wal")).size === 0;
    const { bavail, bsize } = statfsSync(directory);
    const foreign = writeForeignFile(directory, bavail * bsize - 200_000);
    await store.write(({ eraseSecret }) => eraseSecret("things/1"));
    foreign.remove();
    expect(isScrubbed()).toBe(false);
    // The first write may come before the scrub has failed. Each one needs a pause in which its scrub ends.
    const isScrubbedAfterWrite = async () => isScrubbed() || void (await writeEntries(store, 1));
    await vi.waitUntil(isScrubbedAfterWrite, { interval: 500, timeout: 100_000 });
  });
});

describeSmallDisks("a command on a full disk", () => {
  it.each([
    ["keygen", "DISK/k"],
    ["sign", "f", "--key-file", "k.key", "--out", "DISK/f.sig"],
    ["sign", "f", "--key-file", "k.key", "--out", "DISK/f.sig", "--json"],
    ["backup", "DISK/monday.backup", "--data-dir", "data"],
    ["restore", "f.backup", "--data-dir", "DISK/data"],
    ["ca", "init", "--data-dir", "DISK/data"],
    ["store", "init", "--data-dir", "DISK/data"],
  ])("exits with code 4 and one line: %s", { timeout }, async (...args: string[]) => {
    const cwd = makeTemporaryDirectory();
    const run = (words: readonly string[]) => runHere(words, { cwd, env: inheritedEnvironment() });
    writeFileSync(join(cwd, "f"), "a document");
    await run(["keygen", "k"]);
    await run(["store", "init", "--data-dir", "data"]);
    await run(["backup", "f.backup", "--data-dir", "data"]);
    const disk = makeSmallDisk("64k");
    writeForeignFile(disk);
    const { code, stdout, stderr } = await run(args.map((word) => word.replace("DISK", disk)));
    expect({ code, stdout }).toEqual({ code: 4, stdout: "" });
    expect(stderr).toMatch(args.includes("--json") ? /"reason":"DISK_FULL",.*disk is full"/ : oneSentence);
    expect(readdirSync(disk).filter((name) => name !== "data")).toEqual(["foreign"]);
  });
});

describeSmallDisks("the key service with a store on a full disk", () => {
  let kms: KmsClient;
  let url: string;
  let keyId = "";
  let kemKeyId = "";
  let signature: Uint8Array;
  /** Keys that were created although the disk was full. */
  let added = 0;
  const atEnd = endAfterAll();
  beforeAll(async () => {
    const directory = makeSmallDisk("2m", atEnd);
    ({ kms, url } = await startKmsServer({ dataDir: directory }, atEnd));
    keyId = present((await kms.createKey({ alias: "for signing", algorithm: "ML-DSA-44" })).result).keyId;
    kemKeyId = present((await kms.createKey({ algorithm: "ML-KEM-512" })).result).keyId;
    signature = present((await kms.sign({ keyId, data })).result).signature;
    await waitForReserve(directory);
    writeForeignFile(directory);
    // The log may have room for a few more.
    while ((await outcomeOf(kms.createKey({}))) === "answer") added += 1;
    expect(await refusal(kms.createKey({}))).toEqual(full);
    await vi.waitUntil(async () => (await fetch(`${url}/readyz`)).status === 503, { timeout: 100_000 });
  });

  const signed = (signature: Uint8Array) => () => kms.verify({ keyId, data, signature });
  const reading: [string, () => Promise<unknown>, () => object][] = [
    ["GetKey", () => kms.getKey({ keyId }), () => ({ result: { alias: "for signing" } })],
    ["ListKeys", () => kms.listKeys({}), () => ({ totalSize: 2 + added })],
    ["GetAuditLog with a filter", () => kms.getAuditLog({ operation: "SIGN" }), () => ({ totalSize: 1 })],
    ["GetHealth", () => kms.getHealth({}), () => ({ serviceStatus: "DOWN" })],
    ["Verify", () => signed(signature)(), () => ({ result: { valid: true } })],
    ["Verify of a wrong signature", signed(Buffer.alloc(2420)), () => ({ result: { valid: false } })],
    ["VerifyAuditLog", () => kms.verifyAuditLog({}), () => ({ valid: true, entries: 3 + added })],
    ["GetAuditLog, without entries of Verify", () => kms.getAuditLog({}), () => ({ totalSize: 3 + added })],
  ];
  it.each(reading)("answers %s", async (_rpc, call, answer) => {
    expect(await call()).toMatchObject(answer());
  });

  const writing: [string, () => Promise<unknown>][] = [
    ["CreateKey", () => kms.createKey({})],
    ["CreateKey with an idempotency key", () => kms.createKey({}, { headers: { "idempotency-key": "1" } })],
    ["RotateKey", () => kms.rotateKey({ keyId })],
    ["EnableKey", () => kms.enableKey({ keyId })],
    ["Sign", () => kms.sign({ keyId, data })],
    ["SignStream", () => kms.signStream(streamOf(keyId))],
    ["BatchSign", () => kms.batchSign({ keyId, data: [data, data] })],
    ["Encapsulate", () => kms.encapsulate({ keyId: kemKeyId })],
    ["Decapsulate", () => kms.decapsulate({ keyId: kemKeyId, ciphertext: Buffer.alloc(768) })],
    ["a Sign that it would reject anyway", () => kms.sign({ keyId: "key-unknown", data })],
  ];
  it.each(writing)(
    "rejects %s with STORE_FULL, because its audit entry cannot be written",
    async (_rpc, call) => {
      expect(await refusal(call())).toEqual(full);
    },
  );
});

describeSmallDisks("a server with users on a full disk", () => {
  it("lets users log in and remove keys and grants, reports itself not ready, and recovers on its own", {
    timeout,
  }, async () => {
    const directory = makeSmallDisk("24m");
    const store = ["--data-dir", directory];
    const runAs = (args: string[], stdin = "") => runHere(args, { env: inheritedEnvironment(), stdin });
    expect((await runAs(["store", "init", ...store])).code).toBe(0);
    for (const [name, role] of [
      ["ada", "admin"],
      ["bob", "user"],
      ["eve", "user"],
    ] as const)
      expect((await runAs(["user", "add", name, role, ...store], `${password}\n`)).code).toBe(0);
    const { url, stop } = await startKmsServer({ dataDir: directory, args: ["--auth", "token"] });
    const send = async (line: string, body?: object, token = "") => {
      const { status, json } = await callRest(url, line, body, { authorization: `Bearer ${token}` });
      return { ...(json as Answer), status };
    };
    const logIn = (username: string, secret = password) =>
      send("POST /api/auth/token", { username, password: secret });
    const readyz = async () => (await fetch(`${url}/readyz`)).text();
    const { token } = await logIn("ada");
    const create = () => send("POST /api/kms/create-key", {}, token);
    const createKey = async () => present((await create()).result).keyId;
    const [first, second, third] = [await createKey(), await createKey(), await createKey()];
    const grant = { keyId: first, grantee: "bob", operations: ["SIGN"] };
    const { grant: granted } = await send("POST /api/kms/grants", grant, token);
    await waitForReserve(directory);

    const foreign = writeForeignFile(directory);
    const refused = await vi.waitUntil(async () => {
      const answer = await create();
      return answer.status === 200 ? undefined : answer;
    }, timeout);
    expect(refused).toMatchObject({ status: 429, details: [{ reason: "STORE_FULL" }] });
    await expect.poll(readyz).toBe("the store cannot be written: disk full\n");

    const again = await logIn("ada");
    expect(again.status).toBe(200);
    expect(await logIn("bob", "another password, and wrong")).toMatchObject({ status: 401 });
    const safe: [line: string, body?: object][] = [
      ["POST /api/kms/disable-key", { keyId: first }],
      [`DELETE /api/kms/key/${second}`],
      [`DELETE /api/kms/key/${third}?afterSeconds=86400`],
      [`DELETE /api/kms/grants/${granted?.grantId}`],
    ];
    for (const [line, body] of safe)
      expect(await send(line, body, again.token), line).toMatchObject({ status: 200 });
    // Another program writes to the same store.
    expect((await runAs(["user", "remove", "eve", ...store])).code).toBe(0);
    // The reserve has space for many log-ins.
    for (let n = 0; n < 10; n += 1) expect((await logIn("bob")).status).toBe(200);
    expect(await create()).toMatchObject({ status: 429 });
    expect(await readyz()).toBe("the store cannot be written: disk full\n");

    foreign.remove();
    await expect.poll(readyz).toBe("ready\n");
    expect(await create()).toMatchObject({ status: 200 });
    expect(existsSync(join(directory, "qsp.db-reserve"))).toBe(true);
    const { code, stderr } = await stop();
    expect(code).toBe(0);
    // Calls rejected because of the full disk are not logged one by one: the log may be on the same disk.
    expect(stderr.match(/call failed|the store can[^"]*/g)).toEqual([
      "the store cannot be written: disk full",
      "the store can be written again",
    ]);
    expect((await runAs(["store", "verify", ...store])).code).toBe(0);
    expect((await runAs(["audit", "verify", ...store])).code).toBe(0);
  });
});

interface Answer {
  readonly token?: string;
  readonly result?: { readonly keyId: string };
  readonly grant?: { readonly grantId: string };
}

async function openStore(directory: string): Promise<SmallStore> {
  return { directory, server: await startKmsServer({ dataDir: directory }), lives: createLives() };
}

/** Loads a store while a foreign file fills its disk, until calls have failed. */
async function fillUnderLoad({ directory, server, lives }: SmallStore) {
  const load = startLoad({ lives, server, random: createRandom(20261123) });
  await load.answers(50);
  const foreign = writeForeignFile(directory);
  await vi.waitUntil(() => lives.failures.length > 50, timeout);
  return { load, foreign };
}

async function createUntilRefused({ server, lives }: SmallStore): Promise<void> {
  const create = async (): Promise<void> => {
    while (lives.failures.length < 200)
      await createKey({ lives, kms: server.kms }, `key-${lives.lines.size}`);
  };
  await Promise.all(Array.from({ length: 16 }, create));
}

/** Checks that the program runs, accepts writes, and has everything that it acknowledged. */
async function expectGoesOn({ server, lives }: SmallStore): Promise<void> {
  // Verifications leave no entry while the disk is full.
  for (const { versions } of lives.lines.values()) for (const { verified } of versions) verified.least = 0;
  // The reserve comes first.
  await expect.poll(async () => (await fetch(`${server.url}/readyz`)).status).toBe(200);
  expect(await createKey({ lives, kms: server.kms }, "the-first-with-space")).toBe(true);
  expect(await judgeLives(lives, server.kms)).toEqual([]);
}

async function* streamOf(keyId: string) {
  yield { part: { case: "header", value: { keyId } } } as const;
  yield { part: { case: "chunk", value: data } } as const;
}

import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { mlDsaNames, mlKemNames } from "../../src/crypto/algorithms.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { present } from "../services/answers.ts";
import { type AtEnd, endAfterAll } from "../support/at-end.ts";
import { type RunningServer, runToEnd, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { findSecrets, type Haystack, type Secret } from "./secrets.ts";
import { openSecrets, readSealed, withStore } from "./store-secrets.ts";

/** Everything that a server left behind, and what must not be in it. */
interface Remains {
  /** The data directory while the server ran. */
  readonly whileRunning: readonly Haystack[];
  readonly afterStop: readonly Haystack[];
  /** Backup made while the server ran. */
  readonly backup: readonly Haystack[];
  readonly output: readonly Haystack[];
  readonly answers: readonly Haystack[];
  readonly masterKey: Secret;
  /** Everything that the store seals: seeds, and the keys expanded from them. */
  readonly sealed: readonly Secret[];
  /** Messages and shared secrets of callers, and their tokens. */
  readonly ofCallers: readonly Secret[];
  readonly publicKeys: readonly Secret[];
  /** Database content of destroyed keys: useless without the master key. */
  readonly blobsOfDestroyed: readonly Secret[];
  readonly blobsOfKept: readonly Secret[];
}

describe("a server that logs everything, and creates, uses, rotates and destroys keys of all kinds", () => {
  const atEnd = endAfterAll();
  let remains: Remains;
  beforeAll(async () => {
    remains = await leaveRemains(makeTemporaryDirectory(atEnd), makeTemporaryDirectory(atEnd), atEnd);
  }, 120_000);

  it.each(["whileRunning", "afterStop", "backup", "output", "answers"] as const)(
    "leaves no stored secret in the clear (%s)",
    (where) => {
      expect(findSecrets(remains[where], remains.sealed)).toEqual([]);
    },
  );

  it("has its master key in a single file", () => {
    const { whileRunning, afterStop, backup, output, answers, masterKey } = remains;
    const anywhere = [...whileRunning, ...afterStop, ...backup, ...output, ...answers];
    expect(findSecrets(anywhere, [masterKey])).toEqual(["master key in master.key"]);
  });

  it.each(["whileRunning", "afterStop", "backup", "output"] as const)(
    "keeps no message, shared secret or token of its callers (%s)",
    (where) => {
      expect(findSecrets(remains[where], remains.ofCallers)).toEqual([]);
    },
  );

  it.each(["afterStop", "backup"] as const)("erases the sealed secrets of destroyed keys (%s)", (where) => {
    expect(findSecrets(remains[where], remains.blobsOfDestroyed)).toEqual([]);
  });

  it.each(["whileRunning", "afterStop", "backup"] as const)(
    "was searched where its records are (%s)",
    (where) => {
      const records = [...remains.publicKeys, ...remains.blobsOfKept];
      expect(namesOf(findSecrets(remains[where], records))).toEqual(namesOf(records.map(({ name }) => name)));
    },
  );

  it("was searched where its answers are", () => {
    const answered = [...remains.publicKeys, ...remains.ofCallers.filter(({ name }) => name !== "message")];
    const names = answered.map(({ name }) => name);
    expect(namesOf(findSecrets(remains.answers, answered))).toEqual(namesOf(names));
  });

  it("was searched where its log is", () => {
    const log = remains.output.map(({ bytes }) => Buffer.from(bytes).toString()).join("");
    expect(log).toContain('"reason":"KEY_DAMAGED"');
    expect(log).toContain("kms.KmsService/Decapsulate");
  });
});

describe("a data directory", () => {
  it("has no write-ahead log with erased content once the program has closed the database", {
    timeout: 180_000,
  }, async () => {
    const dataDir = makeTemporaryDirectory();
    const provider = await createCryptoProvider("openssl");
    const logs: string[] = [];
    // Threads end in arbitrary order: a single run would prove little.
    for (let times = 0; times < 8; times += 1) {
      await withStore(dataDir, provider, ({ write }) =>
        write(({ putSecret }) => putSecret(`${times}`, message)),
      );
      logs.push(...readdirSync(dataDir).filter((name) => name.endsWith("-wal")));
    }
    await provider.close();
    expect(logs).toEqual([]);
  });
});

function namesOf(found: readonly string[]): string[] {
  return [...new Set(found.map((name) => name.replace(/ in .*/, "")))].sort();
}

async function leaveRemains(dataDir: string, otherDir: string, atEnd: AtEnd): Promise<Remains> {
  const provider = await createCryptoProvider("openssl");
  const server = await startServer({ dataDir, args: ["--log-level", "trace"] });
  atEnd(async () => void (await server.stop("SIGKILL")));
  const caller = createCaller(server);
  const kept = await createKeys(caller, "kept", algorithms);
  const destroyed = await createKeys(caller, "destroyed", ["ML-DSA-65", "SLH-DSA-SHA2-128f", "ML-KEM-768"]);
  const before = await withStore(dataDir, provider, async (store) => ({
    secrets: await openSecrets(store, provider),
    sealed: await readSealed(store),
  }));

  for (const key of [...kept, ...destroyed]) await useKey(caller, key);
  for (const { keyId } of kept) await caller.post("rotate-key", { keyId });
  for (const { keyId } of destroyed) await caller.send("DELETE", `/api/kms/key/${keyId}`);
  await provokeRefusals(caller, dataDir, provider, present(destroyed[0]));
  const after = await withStore(dataDir, provider, (store) => openSecrets(store, provider));

  const backupFile = join(otherDir, "backup");
  const { code, stdout, stderr } = await runToEnd(["backup", backupFile, "--data-dir", dataDir]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  const whileRunning = readDirectory(dataDir);
  const exit = await server.stop();
  await provider.close();

  const blobsOf = (keys: readonly CreatedKey[]): Secret[] =>
    before.sealed
      .filter(({ identity }) => keys.some(({ keyId }) => identity.includes(keyId)))
      .flatMap(({ identity, blobs }) => blobs.map((bytes, i) => ({ name: `${identity} blob ${i}`, bytes })));
  return {
    whileRunning,
    afterStop: readDirectory(dataDir),
    backup: readDirectory(otherDir),
    output: Object.entries({ ...exit, stdoutOfBackup: stdout, stderrOfBackup: stderr }).map(toHaystack),
    answers: caller.answers.map((text, i) => toHaystack([`answer ${i}`, text])),
    masterKey: {
      name: "master key",
      bytes: Buffer.from(readFileSync(join(dataDir, "master.key"), "utf8"), "hex"),
    },
    sealed: [...new Map([...before.secrets, ...after].map((secret) => [secret.name, secret])).values()],
    ofCallers: [{ name: "message", bytes: message }, ...caller.secrets],
    publicKeys: kept.map(({ alias, publicKey }) => ({
      name: alias,
      bytes: Buffer.from(publicKey, "base64"),
    })),
    blobsOfDestroyed: blobsOf(destroyed),
    blobsOfKept: blobsOf(kept),
  };
}

function toHaystack([name, text]: [string, unknown]): Haystack {
  return { name, bytes: Buffer.from(String(text)) };
}

function readDirectory(path: string): Haystack[] {
  return readdirSync(path).map((name) => ({ name, bytes: readFileSync(join(path, name)) }));
}

/** What the server answered about a key. */
interface CreatedKey {
  readonly keyId: string;
  readonly alias: string;
  readonly algorithm: string;
  readonly usage: string;
  readonly publicKey: string;
}

/** The fields of answers that the test uses. */
interface Answer {
  readonly result: CreatedKey & {
    readonly signature: string;
    readonly ciphertext: string;
    readonly sharedSecret: string;
  };
  readonly token: string;
}

type Caller = ReturnType<typeof createCaller>;

/** Makes calls over REST, and keeps the answers, and what callers sent and nobody else may see. */
function createCaller({ url }: RunningServer) {
  const answers: string[] = [];
  const secrets: Secret[] = [];
  const send = async (method: string, path: string, body?: string, headers = {}): Promise<Answer> => {
    const response = await fetch(url + path, {
      method,
      headers: { "content-type": "application/json", ...headers },
      ...(body !== undefined && { body }),
    });
    const text = await response.text();
    answers.push(text, JSON.stringify([...response.headers]));
    return JSON.parse(text);
  };
  /** Calls the key service. */
  const post = (path: string, body: object, headers = {}) =>
    send("POST", `/api/kms/${path}`, JSON.stringify(body), headers);
  return { answers, secrets, send, post };
}

/** Each length of a secret key: the store treats other parameter sets of SLH-DSA like these. */
const algorithms = [
  ...mlDsaNames,
  ...(["SLH-DSA-SHA2-128f", "SLH-DSA-SHAKE-192f", "SLH-DSA-SHA2-256f"] as const),
  ...mlKemNames,
];
const message = randomBytes(64);
const data = message.toString("base64");

/** Creates a key for each algorithm; the answers are kept for repeated requests. */
async function createKeys({ post }: Caller, name: string, names: readonly string[]): Promise<CreatedKey[]> {
  const keys = await Promise.all(
    names.map((algorithm) => {
      const alias = `${name} ${algorithm}`;
      return post("create-key", { alias, algorithm }, { "idempotency-key": alias });
    }),
  );
  return keys.map(({ result }) => result);
}

async function useKey({ post, secrets }: Caller, { keyId, alias, usage }: CreatedKey): Promise<void> {
  if (usage === "KEM") {
    const { result } = await post("encapsulate", { keyId });
    secrets.push({ name: `shared secret of ${alias}`, bytes: Buffer.from(result.sharedSecret, "base64") });
    await post("decapsulate", { keyId, ciphertext: result.ciphertext });
    return;
  }
  const { result } = await post("sign", { keyId, data });
  await post("verify", { keyId, data, signature: result.signature });
  await post("batch-sign", { keyId, data: [data, data] });
}

/** Makes the server log errors. */
async function provokeRefusals(
  { send, post, secrets }: Caller,
  dataDir: string,
  provider: CryptoProvider,
  destroyed: CreatedKey,
): Promise<void> {
  const { keyId } = destroyed;
  await post("sign", { keyId, data });
  await post("sign", { keyId: "key-unknown", data });
  await post("sign", { keyId, data, unknown: data });
  await send("POST", "/api/kms/sign", `{"data":"${data}"`);
  const { token } = await send("POST", "/api/auth/token", JSON.stringify({ username: "ada" }));
  secrets.push({ name: "token", bytes: Buffer.from(token) });
  await send("GET", "/api/secure", undefined, { authorization: `Bearer ${token}` });
  await send("GET", "/api/secure", undefined, { authorization: `Bearer ${token.slice(0, -8)}AAAAAAAA` });
  const { keyId: damagedKeyId } = (await post("create-key", {})).result;
  await damageKey(damagedKeyId, dataDir, provider);
  await post("sign", { keyId: damagedKeyId, data });
  // The store opens again after this.
  await send("DELETE", `/api/kms/key/${damagedKeyId}`);
}

function damageKey(keyId: string, dataDir: string, provider: CryptoProvider): Promise<unknown> {
  return withStore(dataDir, provider, (store) =>
    store.write(({ db }) =>
      db
        .updateTable("sealed_secrets")
        .set({ ciphertext: randomBytes(60) })
        .where("identity", "like", `%${keyId}%`)
        .execute(),
    ),
  );
}

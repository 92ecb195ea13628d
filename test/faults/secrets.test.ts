/** What a server leaves behind: no secret, anywhere. Opens the sealed secrets of its store to know them. */
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { inspect } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import {
  type Algorithm,
  algorithms,
  isMlDsaAlgorithm,
  mlDsaNames,
  mlKemNames,
} from "../../src/crypto/algorithms.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import type { Store } from "../../src/store/store.ts";
import { present } from "../services/answers.ts";
import { type AtEnd, endAfterAll } from "../support/at-end.ts";
import { openTestStore } from "../support/open-store.ts";
import { type RunningServer, runToEnd, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { findSecrets, type Haystack, type Secret } from "./secrets.ts";

/** Opens the store of a data directory while the server uses it. */
async function withStore<T>(
  dataDir: string,
  provider: CryptoProvider,
  use: (store: Store) => Promise<T>,
): Promise<T> {
  const store = await openTestStore(dataDir, provider);
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

/** A secret as the database stores it. */
interface Sealed {
  readonly identity: string;
  /** Its random parts: the wrapped data key and the ciphertext. */
  readonly blobs: readonly Uint8Array[];
}

/** Reads all sealed secrets without opening them. */
async function readSealed({ reader }: Store): Promise<Sealed[]> {
  const rows = await reader.selectFrom("sealed_secrets").selectAll().execute();
  return rows.map(({ identity, wrapped_data_key, ciphertext }) => ({
    identity,
    blobs: [wrapped_data_key, ciphertext],
  }));
}

/** Opens all sealed secrets, and expands the keys of the key service and of the store itself. */
async function openSecrets(store: Store, provider: CryptoProvider): Promise<Secret[]> {
  const keys = await store.reader.selectFrom("kms_keys").select(["key_id", "algorithm"]).execute();
  const algorithmOf = (identity: string): Algorithm | undefined => {
    if (/^(issuer_keys\/|store\/audit-signing-key$)/.test(identity)) return "ML-DSA-65";
    // Stored keys have a known algorithm; for other services, only the seed is searched for.
    return keys.find(({ key_id }) => identity.includes(key_id))?.algorithm as Algorithm | undefined;
  };
  const secrets: Secret[] = [];
  for (const { identity } of await readSealed(store)) {
    const secret = await store.readSecret(identity);
    const algorithm = algorithmOf(identity);
    if (secret === undefined) throw new Error(`${identity} no longer exists`);
    if (algorithm) secrets.push(...(await expand(provider, algorithm, identity, secret)));
    if (algorithm === undefined || hasSeed(algorithm)) secrets.push({ name: identity, bytes: secret });
  }
  return secrets;
}

function hasSeed(algorithm: Algorithm): boolean {
  return algorithms[algorithm].seedBytes !== undefined;
}

/** The secret parts of an expanded key. */
async function expand(
  provider: CryptoProvider,
  algorithm: Algorithm,
  identity: string,
  secret: Uint8Array,
): Promise<Secret[]> {
  const expanded = hasSeed(algorithm)
    ? (await provider.importSecretKey(algorithm, { seed: secret })).exportRaw()
    : secret;
  return secretParts(algorithm, expanded.length).map(([start, end]) => ({
    name: `${identity}, bytes ${start} to ${end} of its expanded form`,
    bytes: expanded.subarray(start, end),
  }));
}

/** The rest of an expanded key is its public key, or a hash of it. */
function secretParts(algorithm: Algorithm, length: number): [number, number][] {
  // FIPS 204, algorithm 24: rho, K, tr, then the vectors.
  if (isMlDsaAlgorithm(algorithm))
    return [
      [32, 64],
      [128, length],
    ];
  // FIPS 203, algorithm 16: the key of K-PKE (384 k bytes of 768 k + 96), the public key, its hash, then z.
  if (algorithm.startsWith("ML-KEM"))
    return [
      [0, (length - 96) / 2],
      [length - 32, length],
    ];
  // FIPS 205, section 9.1: SK.seed, SK.prf, PK.seed, PK.root.
  return [[0, length / 2]];
}

describe("findSecrets", () => {
  const secret = { name: "secret", bytes: randomBytes(96) };
  const forms: [string, (bytes: Buffer) => string | Buffer][] = [
    ["raw bytes", (bytes) => bytes],
    ["hexadecimal", (bytes) => bytes.toString("hex")],
    ["upper-case hexadecimal", (bytes) => bytes.toString("hex").toUpperCase()],
    ["base64", (bytes) => bytes.toString("base64")],
    ["base64url", (bytes) => bytes.toString("base64url")],
    ["a Buffer in JSON", (bytes) => JSON.stringify(bytes)],
    ["a Uint8Array in JSON", (bytes) => JSON.stringify(new Uint8Array(bytes))],
    ["a Uint8Array in JSON in JSON", (bytes) => JSON.stringify(JSON.stringify(new Uint8Array(bytes)))],
    ["a Buffer as Node prints it", (bytes) => inspect(bytes, { maxArrayLength: null })],
    ["a Uint8Array as Node prints it", (bytes) => inspect(new Uint8Array(bytes), { maxArrayLength: null })],
  ];
  describe.each(forms)("finds a secret as %s", (_form, write) => {
    it.each([0, 1, 2, 3, 4, 5])("%s bytes into other bytes", (before) => {
      const bytes = write(Buffer.concat([randomBytes(before), secret.bytes, randomBytes(7)]));
      expect(findSecrets([{ name: "log", bytes: Buffer.from(bytes) }], [secret])).toEqual(["secret in log"]);
    });
    it.each([0, 15, 33, 48])("with only the 48 bytes from offset %s", (from) => {
      const bytes = Buffer.from(write(secret.bytes.subarray(from, from + 48)));
      expect(findSecrets([{ name: "log", bytes }], [secret])).toEqual(["secret in log"]);
    });
  });
  it("does not mistake the trailing zeros of one signature for another signature", () => {
    const token = { name: "token", bytes: Buffer.from(endedByZeros().toString("base64url")) };
    const bytes = Buffer.from(endedByZeros().toString("base64url"));
    expect(findSecrets([{ name: "log", bytes }], [token])).toEqual([]);
    expect(findSecrets([{ name: "log", bytes: token.bytes }], [token])).toEqual(["token in log"]);
  });
  it("finds nothing in other bytes", () => {
    expect(findSecrets([{ name: "log", bytes: randomBytes(100_000) }], [secret])).toEqual([]);
  });
});

function endedByZeros(): Buffer {
  return Buffer.concat([randomBytes(99), Buffer.alloc(60)]);
}

/** Everything that a server left behind, and what must not be in it. */
type Remains = Awaited<ReturnType<typeof leaveRemains>>;

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

async function leaveRemains(dataDir: string, otherDir: string, atEnd: AtEnd) {
  const provider = await createCryptoProvider("openssl");
  const server = await startServer({ dataDir, args: ["--log-level", "trace"] });
  atEnd(async () => void (await server.stop("SIGKILL")));
  const caller = createCaller(server);
  const kept = await createKeys(caller, "kept", createdAlgorithms);
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
    /** The data directory while the server ran. */
    whileRunning,
    afterStop: readDirectory(dataDir),
    backup: readDirectory(otherDir),
    output: Object.entries({ ...exit, stdoutOfBackup: stdout, stderrOfBackup: stderr }).map(toHaystack),
    answers: caller.answers.map((text, i) => toHaystack([`answer ${i}`, text])),
    masterKey: {
      name: "master key",
      bytes: Buffer.from(readFileSync(join(dataDir, "master.key"), "utf8"), "hex"),
    },
    /** Everything that the store seals: seeds, and the keys expanded from them. */
    sealed: [...new Map([...before.secrets, ...after].map((secret) => [secret.name, secret])).values()],
    /** Messages and shared secrets of callers, and their tokens. */
    ofCallers: [{ name: "message", bytes: message }, ...caller.secrets],
    publicKeys: kept.map(({ alias, publicKey }) => ({
      name: alias,
      bytes: Buffer.from(publicKey, "base64"),
    })),
    /** Database content of destroyed keys: useless without the master key. */
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
const createdAlgorithms = [
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

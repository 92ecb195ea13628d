import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { masterKeyIdOf } from "../../src/crypto/sealing.ts";
import { openDatabase } from "../../src/storage/database.ts";
import type { MasterKeySource } from "../../src/storage/master-key.ts";
import { rewrapStore } from "../../src/storage/rewrap.ts";
import type { Store } from "../../src/storage/store.ts";
import { StorageError } from "../../src/storage/store-error.ts";
import { type Exit, runToEnd } from "../interop/start-server.ts";
import { describeStores, makePostgresSite, makeSqliteSite, type Site } from "./stores.ts";

const main = join(import.meta.dirname, "../../src/main.ts");

describeStores("master-key rotate", (makeSite) => {
  it("wraps every data key anew under a new master key, which alone opens them; no ciphertext changes", async () => {
    const site = await makeSite();
    const secrets = await leaveSecrets(site, 5);
    const [oldKey, before] = [readKey(site), await readSealed(site)];
    const exit = await rotate(site);
    const [newKey, after] = [readKey(site), await readSealed(site)];
    expect(exit).toMatchObject({ code: 0, stdout: expect.stringContaining(masterKeyIdOf(newKey)) });
    expect(newKey).not.toEqual(oldKey);
    expect(before.length).toBeGreaterThan(5);
    expect(after.map(({ identity, ciphertext }) => ({ identity, ciphertext }))).toEqual(
      before.map(({ identity, ciphertext }) => ({ identity, ciphertext })),
    );
    expect(new Set(before.map((row) => row.masterKeyId))).toEqual(new Set([masterKeyIdOf(oldKey)]));
    expect(new Set(after.map((row) => row.masterKeyId))).toEqual(new Set([masterKeyIdOf(newKey)]));
    const wrappedKeys = [...before, ...after].map((row) => row.wrappedDataKey);
    expect(new Set(wrappedKeys).size).toBe(wrappedKeys.length);

    expect(existsSync(`${site.keyFile}.next`)).toBe(false);
    expect(await readSecrets(await site.open(), secrets)).toEqual(secrets);
    const old: MasterKeySource = { kind: "values", current: oldKey.toString("hex"), next: undefined };
    await expect(site.open({ masterKey: old })).rejects.toThrow(storageError(/master key is not the one/));
  });

  it("lets a store that is open go on, and what that writes ends under the new key", async () => {
    const site = await makeSite();
    const secrets = new Map(await leaveSecrets(site, 600));
    const store = await site.open();
    const [firstIdentity = ""] = secrets.keys();
    let isRotating = true;
    const rotating = rotate(site).finally(() => {
      isRotating = false;
    });
    let written = 0;
    while (isRotating) {
      written += 1;
      // Some sort before, some behind those that are there.
      const added = secretsNamed(written % 2 === 0 ? "aaa" : "zzz", written, 1);
      await putSecrets(store, added);
      for (const [identity, secret] of added) secrets.set(identity, secret);
      expect(await readSecrets(store, [firstIdentity])).toEqual(
        new Map([[firstIdentity, secrets.get(firstIdentity)]]),
      );
    }
    expect((await rotating).code).toBe(0);
    await putSecrets(store, secretsNamed("after", 1, 1));
    const keyIds = (await readSealed(site)).map(({ masterKeyId }) => masterKeyId);
    expect(new Set(keyIds)).toEqual(new Set([masterKeyIdOf(readKey(site))]));
    expect(written).toBeGreaterThan(1);
    expect(await readSecrets(store, secrets)).toEqual(secrets);
    expect(await readSecrets(await site.open(), secrets)).toEqual(secrets);
  });

  it("names a damaged secret, leaves it as it is, and moves all others", async () => {
    const site = await makeSite();
    const secrets = new Map(await leaveSecrets(site, 5));
    const damaged = "things/00003/seed";
    secrets.delete(damaged);
    await site.sql("update sealed_secrets set wrapped_data_key = $1 where identity = $2", [
      randomBytes(60),
      damaged,
    ]);
    const rowOf = async () => (await readSealed(site)).find(({ identity }) => identity === damaged);
    const before = await rowOf();
    expect(await rotate(site)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`qsp: ${damaged} `),
    });
    expect(await rowOf()).toEqual(before);
    expect(existsSync(`${site.keyFile}.next`)).toBe(false);
    const store = await site.open();
    expect(await readSecrets(store, secrets)).toEqual(secrets);
    await expect(store.readSecret(damaged)).rejects.toMatchObject({ code: "SEAL_BROKEN" });
  });
});

describe("master-key rotate with keys in the environment", { timeout: 60_000 }, () => {
  const [keyOne, keyTwo] = ["1a".repeat(32), "2b".repeat(32)] as const;
  const one: MasterKeySource = { kind: "values", current: keyOne, next: undefined };
  const two: MasterKeySource = { kind: "values", current: keyTwo, next: undefined };

  it("moves all from QSP_MASTER_KEY to QSP_MASTER_KEY_NEXT, and makes no file", async () => {
    const site = await makeSqliteSite();
    const secrets = await leaveSecrets(site, 5, one);
    const exit = await rotate(site, { QSP_MASTER_KEY: keyOne, QSP_MASTER_KEY_NEXT: keyTwo });
    expect(exit).toMatchObject({ code: 0, stdout: expect.stringContaining("QSP_MASTER_KEY") });
    expect([existsSync(site.keyFile), existsSync(`${site.keyFile}.next`)]).toEqual([false, false]);
    expect(await readSecrets(await site.open({ masterKey: two }), secrets)).toEqual(secrets);
    await expect(site.open({ masterKey: one })).rejects.toThrow(storageError(/master key is not the one/));
  });

  it("lets a store that was opened with both keys go on", async () => {
    const site = await makeSqliteSite();
    const secrets = await leaveSecrets(site, 5, one);
    const store = await site.open({ masterKey: { kind: "values", current: keyOne, next: keyTwo } });
    await rewrap(site, { kind: "values", current: keyOne, next: keyTwo });
    const added = secretsNamed("after", 1, 1);
    await putSecrets(store, added);
    expect(await readSecrets(store, secrets)).toEqual(secrets);
    expect(await readSecrets(await site.open({ masterKey: two }), added)).toEqual(added);
  });

  it("lets a store that was opened with the old key alone write nothing under that", async () => {
    const site = await makeSqliteSite();
    const secrets = await leaveSecrets(site, 5, one);
    const store = await site.open({ masterKey: one });
    await rewrap(site, { kind: "values", current: keyOne, next: keyTwo });
    await expect(putSecrets(store, secretsNamed("after", 1, 1))).rejects.toMatchObject({
      code: "UNAVAILABLE",
    });
    expect(await readSecrets(await site.open({ masterKey: two }), secrets)).toEqual(secrets);
  });

  it.each([
    ["without a next key", keyOne, undefined, /QSP_MASTER_KEY_NEXT/],
    ["to the key that it has", keyOne, keyOne, /is the present one/],
    ["from a key that is not the store's", "3c".repeat(32), keyTwo, /master key is not the one/],
  ])("is refused %s, and changes nothing", async (_what, current, next, sentence) => {
    const site = await makeSqliteSite();
    await leaveSecrets(site, 2, one);
    const before = await readSealed(site);
    await expect(rewrap(site, { kind: "values", current, next })).rejects.toThrow(storageError(sentence));
    expect(await readSealed(site)).toEqual(before);
  });

  it("ends with one sentence and exit code 2 without a next key", async () => {
    const site = await makeSqliteSite();
    await leaveSecrets(site, 2, one);
    const exit = await rotate(site, { QSP_MASTER_KEY: keyOne });
    expect(exit).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(/^qsp: [^\n]+\n$/) });
  });
});

describe("master-key rotate that was killed", () => {
  it.each([
    { kind: "SQLite", makeSite: makeSqliteSite, kills: 8, count: 3000 },
    { kind: "PostgreSQL", makeSite: makePostgresSite, kills: 1, count: 1200 },
  ])(
    "leaves a store in $kind that opens, $kills times, and completes at last",
    { timeout: 120_000 },
    async ({ makeSite, kills, count }) => {
      const site = await makeSite();
      const secrets = await leaveSecrets(site, count);
      let interrupted = 0;
      for (let kill = 0; kill < kills; kill++) {
        interrupted += (await rotateAndKill(site)) === "SIGKILL" ? 1 : 0;
        const store = await site.open();
        expect(await readSecrets(store, secrets)).toEqual(secrets);
        await store.close();
      }
      expect(interrupted).toBeGreaterThan(0);
      expect(await rotate(site)).toMatchObject({ code: 0 });
      expect(existsSync(`${site.keyFile}.next`)).toBe(false);
      const keyIds = (await readSealed(site)).map(({ masterKeyId }) => masterKeyId);
      expect(new Set(keyIds)).toEqual(new Set([masterKeyIdOf(readKey(site))]));
      expect(await readSecrets(await site.open(), secrets)).toEqual(secrets);
    },
  );
});

describe("rewrapStore", { timeout: 60_000 }, () => {
  it("tells how far it is, up to all, and how many it moved", async () => {
    const site = await makeSqliteSite();
    await leaveSecrets(site, 1200);
    const all = (await readSealed(site)).length;
    const steps: [number, number][] = [];
    const { moved, damaged, masterKeyId } = await rewrap(site, site.masterKey, (done, total) =>
      steps.push([done, total]),
    );
    expect({ moved, damaged, masterKeyId }).toEqual({
      moved: all,
      damaged: [],
      masterKeyId: masterKeyIdOf(readKey(site)),
    });
    expect(steps.at(0)).toEqual([501, all]);
    expect(steps.at(-1)).toEqual([all, all]);
  });

  it("goes on with the next key that a rotation which did not end has left", async () => {
    const site = await makeSqliteSite();
    const secrets = await leaveSecrets(site, 3);
    const next = randomBytes(32);
    writeFileSync(`${site.keyFile}.next`, `${next.toString("hex")}\n`, { mode: 0o600 });
    expect((await rewrap(site)).masterKeyId).toBe(masterKeyIdOf(next));
    expect(readKey(site)).toEqual(next);
    expect(await readSecrets(await site.open(), secrets)).toEqual(secrets);
  });

  it("refuses a store that was never used", async () => {
    const site = await makeSqliteSite();
    await (await openDatabase(site.location)).close();
    writeFileSync(site.keyFile, `${"0f".repeat(32)}\n`, { mode: 0o600 });
    await expect(rewrap(site)).rejects.toThrow(storageError(/was never used/));
  });

  it("refuses to go on without the present master key", async () => {
    const site = await makeSqliteSite();
    await leaveSecrets(site, 1);
    rmSync(site.keyFile);
    await expect(rewrap(site)).rejects.toThrow(storageError(/is missing/));
  });
});

describe("a store that is open", { timeout: 60_000 }, () => {
  it.skipIf(process.platform === "win32")(
    "finds the new key when the rotation ends between its looks at the two files",
    async () => {
      const site = await makeSqliteSite();
      const secrets = await leaveSecrets(site, 1);
      const store = await site.open();
      const oldText = readFileSync(site.keyFile, "utf8");
      await rewrap(site);
      const newText = readFileSync(site.keyFile, "utf8");
      // As it was a moment before: the old key in its place. Reading it ends when the new one has taken that.
      writeFileSync(`${site.keyFile}.next`, newText, { mode: 0o600 });
      rmSync(site.keyFile);
      await once(startShell('mkfifo -m 600 "$1"', site.keyFile), "exit");
      startShell('exec 3>"$1"; printf %s "$2" >&3; mv "$1.next" "$1"', site.keyFile, oldText);
      expect(await readSecrets(store, secrets)).toEqual(secrets);
    },
  );
});

/** What a row of sealed_secrets holds, bytes in hexadecimal. */
interface SealedRow {
  readonly identity: string;
  readonly masterKeyId: string;
  readonly wrappedDataKey: string;
  readonly ciphertext: string;
}

/** Secrets by their identities. */
type Secrets = ReadonlyMap<string, string>;

function storageError(message: RegExp) {
  return expect.objectContaining({ constructor: StorageError, message: expect.stringMatching(message) });
}

function rotate({ flags }: Site, env?: Readonly<Record<string, string>>): Promise<Exit> {
  return runToEnd(["master-key", "rotate", ...flags], env);
}

/** Rotates, and kills the program up to 150 ms after it has begun to move. @returns the signal, if that came in time */
async function rotateAndKill(site: Site): Promise<NodeJS.Signals | null> {
  const before = JSON.stringify(await countByKey(site));
  const child = spawn(process.execPath, [main, "master-key", "rotate", ...site.flags], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  const exit = once(child, "exit");
  const hasBegun = async () => isOver(child) || JSON.stringify(await countByKey(site)) !== before;
  await expect.poll(hasBegun, { timeout: 30_000, interval: 5 }).toBe(true);
  // The random moment is what this is about; nothing waits for it.
  await setTimeout(randomInt(0, 150));
  child.kill("SIGKILL");
  const [, signal] = await exit;
  return signal;
}

function isOver({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

function countByKey({ sql }: Site) {
  return sql("select master_key_id, count(*) as count from sealed_secrets group by 1 order by 1");
}

async function rewrap(
  site: Site,
  masterKey: MasterKeySource = site.masterKey,
  onProgress: (moved: number, total: number) => void = () => {},
) {
  const database = await openDatabase(site.location, "existing");
  try {
    return await rewrapStore(database, masterKey, onProgress);
  } finally {
    await database.close();
  }
}

/** Makes a store with secrets in it, and closes it. */
async function leaveSecrets(site: Site, count: number, masterKey = site.masterKey): Promise<Secrets> {
  const store = await site.open({ masterKey });
  const secrets = secretsNamed("things", 1, count);
  await putSecrets(store, secrets);
  await store.close();
  return secrets;
}

function secretsNamed(kind: string, from: number, count: number): Secrets {
  const numbers = Array.from({ length: count }, (_, i) => String(from + i).padStart(5, "0"));
  return new Map(numbers.map((number) => [`${kind}/${number}/seed`, `secret ${kind} ${number}`]));
}

async function putSecrets(store: Store, secrets: Secrets): Promise<void> {
  await store.write(async ({ putSecret }) => {
    for (const [identity, secret] of secrets) await putSecret(identity, Buffer.from(secret));
  });
}

/** Opens the secrets of these identities. */
async function readSecrets(store: Store, identities: Secrets | readonly string[]): Promise<Secrets> {
  const entries = [...identities.keys()].map(async (key) => {
    const identity = typeof key === "string" ? key : (identities as readonly string[])[key];
    const secret = await store.readSecret(identity ?? "");
    return [identity, Buffer.from(secret ?? []).toString()] as [string, string];
  });
  return new Map(await Promise.all(entries));
}

async function readSealed({ sql }: Site): Promise<SealedRow[]> {
  const rows = await sql("select * from sealed_secrets order by identity");
  const hex = (value: unknown): string => Buffer.from(value as Uint8Array).toString("hex");
  return rows.map((row) => ({
    identity: String(row.identity),
    masterKeyId: String(row.master_key_id),
    wrappedDataKey: hex(row.wrapped_data_key),
    ciphertext: hex(row.ciphertext),
  }));
}

function readKey({ keyFile }: Site): Buffer {
  return Buffer.from(readFileSync(keyFile, "utf8").trim(), "hex");
}

function startShell(script: string, ...args: string[]): ChildProcess {
  const child = spawn("sh", ["-c", script, "sh", ...args], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

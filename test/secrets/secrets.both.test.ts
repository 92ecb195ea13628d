import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { nameMasterKey } from "../../src/crypto/sealing.ts";
import { StorageError } from "../../src/database/store-error.ts";
import { olderKeyPath } from "../../src/secrets/master-key.ts";
import { putSecrets, readSecretText, writeEntries } from "../support/entries.ts";
import { describeStores, type MakePlace, makeSqlitePlace, type Place, type Row } from "../support/on-both.ts";
import { openDatabase } from "../support/open-store.ts";
import type { Run } from "../support/run-here.ts";
import { storageError } from "../support/storage-error.ts";
import {
  expectSecrets,
  leaveSecrets,
  readKey,
  readKeyIds,
  readPreviousKey,
  readSealed,
  readSecrets,
  rewrap,
  rotate,
  secretsNamed,
  valuesOf,
} from "./rewrap-place.ts";

const first = "things/1/seed";
const second = "things/2/seed";

describeStores("a secret", (makePlace) => {
  it("is returned as stored, even after reopening, and not stored in the clear", async () => {
    const { place, store, query } = await openWithSecrets(makePlace);
    expect(await readSecretText(store, first)).toBe("alpha");
    const rows = await query("select * from sealed_secrets where identity = $1", [first]);
    const bytes = rows.flatMap((row) => Object.values(row)).filter((value) => value instanceof Uint8Array);
    expect(bytes).toHaveLength(2);
    expect(bytes.some((value) => Buffer.from(value).includes("alpha"))).toBe(false);
    await store.close();
    expect(await readSecretText(await place.open(), first)).toBe("alpha");
  });

  it.each([0, 4096])("of %i bytes is returned, also in the transaction that stores it", async (length) => {
    const store = await (await makePlace()).open();
    const secret = randomBytes(length);
    const found = await store.write(async ({ putSecret, readSecret }) => {
      await putSecret(first, secret);
      return readSecret(first);
    });
    expect(found && Buffer.from(found)).toEqual(secret);
    const read = await store.readSecret(first);
    expect(read && Buffer.from(read)).toEqual(secret);
  });

  it("is not replaced by a second secret with the same identity", async () => {
    const { store } = await openWithSecrets(makePlace);
    await expect(putSecrets(store, [[first, "gamma"]])).rejects.toThrow();
    expect(await readSecretText(store, first)).toBe("alpha");
  });

  it("is removed when erased, but its neighbour is not", async () => {
    const { place, store, query } = await openWithSecrets(makePlace);
    await store.write(({ eraseSecret }) => eraseSecret(first));
    expect(await store.readSecret(first)).toBeUndefined();
    const left = await query("select identity from sealed_secrets where identity like 'things/%'");
    expect(left).toEqual([{ identity: second }]);
    expect(await readSecretText(await place.open(), second)).toBe("beta");
  });
});

const ofSecond = (column: string) => `(select ${column} from sealed_secrets where identity = '${second}')`;

describeStores("a tampered secret", (makePlace) => {
  it.each([
    ["with a changed ciphertext", "ciphertext = $1", first],
    ["with a changed data key", "wrapped_data_key = $1", first],
    [
      "if another's row was copied over it",
      `wrapped_data_key = ${ofSecond("wrapped_data_key")}, ciphertext = ${ofSecond("ciphertext")}`,
      first,
    ],
    ["under a different identity", "identity = 'things/3/seed'", "things/3/seed"],
  ])("does not open %s", async (_what, change, identity) => {
    const { store, query } = await openWithSecrets(makePlace);
    const values = change.includes("$1") ? [new Uint8Array(60)] : [];
    await query(`update sealed_secrets set ${change} where identity = '${first}'`, values);
    await expect(store.readSecret(identity)).rejects.toMatchObject({ code: "SEAL_BROKEN" });
    expect(await readSecretText(store, second)).toBe("beta");
  });
});

describeStores("a store", (makePlace) => {
  it("does not open with a wrong master key, which changes nothing", async () => {
    const place = await leaveWithSecrets(makePlace);
    const wrong = valuesOf("ab".repeat(32));
    await expect(place.open({ masterKey: wrong })).rejects.toThrow(storageError(/master key is not the one/));
    expect(await readSecretText(await place.open(), first)).toBe("alpha");
  });

  it("does not open without its master key, and none is created", async () => {
    const place = await leaveWithSecrets(makePlace);
    rmSync(place.keyFile);
    await expect(place.open()).rejects.toThrow(storageError(/is missing/));
    expect(existsSync(place.keyFile)).toBe(false);
  });
});

async function openWithSecrets(
  makePlace: MakePlace,
  secrets: Readonly<Record<string, string>> = { [first]: "alpha", [second]: "beta" },
) {
  const place = await makePlace();
  const store = await place.open();
  await putSecrets(store, Object.entries(secrets));
  return { place, store, query: place.query };
}

async function leaveWithSecrets(makePlace: MakePlace): Promise<Place> {
  const { place, store } = await openWithSecrets(makePlace);
  await store.close();
  return place;
}

describeStores("master-key rotate", (makePlace) => {
  it("rewraps every data key with a new master key, the only one that opens them, and changes no ciphertext", async () => {
    const { place, secrets } = await leaveSecrets(5, { makePlace });
    const [oldKey, before] = [readKey(place), await readSealed(place)];
    expect(await readKeyIds(place)).toEqual([nameMasterKey(oldKey)]);
    const exit = await rotate(place);
    const [newKey, after] = [readKey(place), await readSealed(place)];
    expect(exit).toMatchObject({ code: 0, stdout: expect.stringContaining(nameMasterKey(newKey)) });
    expect(newKey).not.toEqual(oldKey);
    expect(await readKeyIds(place)).toEqual([nameMasterKey(newKey)]);
    expect(before.length).toBeGreaterThan(5);
    expect(after).toMatchObject(before.map(({ identity, ciphertext }) => ({ identity, ciphertext })));
    const dataKeys = [...before, ...after].map((row) => JSON.stringify(row.wrapped_data_key));
    expect(new Set(dataKeys).size).toBe(dataKeys.length);
    expect(existsSync(`${place.keyFile}.next`)).toBe(false);
    await expectSecrets(place, secrets);
    const old = valuesOf(oldKey.toString("hex"));
    await expect(place.open({ masterKey: old })).rejects.toThrow(storageError(/master key is not the one/));
  });

  it("does not disturb an open store, whose new secrets end up under the new key", async () => {
    const { place, secrets: left } = await leaveSecrets(600, { makePlace });
    const secrets = new Map(left);
    const store = await place.open();
    const [[firstIdentity, firstSecret] = ["", ""]] = secrets;
    let isRotating = true;
    const rotating = rotate(place).finally(() => {
      isRotating = false;
    });
    let written = 0;
    while (isRotating) {
      written += 1;
      // Some sort before the existing ones, some after.
      const added = secretsNamed(written % 2 === 0 ? "aaa" : "zzz", written, 1);
      await putSecrets(store, added);
      for (const [identity, secret] of added) secrets.set(identity, secret);
      expect(await readSecretText(store, firstIdentity)).toBe(firstSecret);
    }
    expect((await rotating).code).toBe(0);
    await putSecrets(store, secretsNamed("after", 1, 1));
    expect(await readKeyIds(place)).toEqual([nameMasterKey(readKey(place))]);
    expect(written).toBeGreaterThan(1);
    expect(await readSecrets(store, secrets)).toEqual(secrets);
    await expectSecrets(place, secrets);
  });

  it("names a damaged secret, leaves it unchanged, and moves all others", async () => {
    const { place, secrets: left } = await leaveSecrets(5, { makePlace });
    const secrets = new Map(left);
    const damaged = "things/00003/seed";
    secrets.delete(damaged);
    const change = "update sealed_secrets set wrapped_data_key = $1 where identity = $2";
    await place.query(change, [randomBytes(60), damaged]);
    const readRow = async () => (await readSealed(place)).find(({ identity }) => identity === damaged);
    const before = await readRow();
    const stderr = expect.stringContaining(`qsp: ${damaged} `);
    expect(await rotate(place)).toMatchObject({ code: 1, stderr });
    expect(await readRow()).toEqual(before);
    expect(existsSync(`${place.keyFile}.next`)).toBe(false);
    expect(nameMasterKey(readPreviousKey(place))).toBe(before?.master_key_id);
    const store = await place.open();
    expect(await readSecrets(store, secrets)).toEqual(secrets);
    await expect(store.readSecret(damaged)).rejects.toMatchObject({ code: "SEAL_BROKEN" });
  });
});

describe("master-key rotate with keys in files", { timeout: 180_000 }, () => {
  it("keeps all previous keys, readable only by their owner, and explains their use", async () => {
    const { place } = await leaveSecrets(2);
    const first = readKey(place);
    const { stdout } = await rotate(place);
    expect(stdout).toContain(`${place.keyFile}.previous contains the previous key`);
    expect(stdout).toMatch(/which older backups need/);
    expect(readPreviousKey(place)).toEqual(first);
    expect(statSync(`${place.keyFile}.previous`).mode & 0o777).toBe(0o600);
    const second = readKey(place);
    await rewrap(place);
    expect(readPreviousKey(place)).toEqual(second);
    expect(readKey({ keyFile: olderKeyPath(place.keyFile, nameMasterKey(first)) })).toEqual(first);
  });

  it("moves secrets under previous keys, and counts them while their key is unavailable", async () => {
    const { place, secrets } = await leaveSecrets(30);
    const first = readKey(place);
    const before = await place.query("select * from sealed_secrets where identity like 'things/%'");
    await rewrap(place);
    await putBack(place, before);
    expect(await rewrap(place)).toMatchObject({ damaged: [], outOfReach: [] });
    await expectSecrets(place, secrets);
    for (const name of readdirSync(place.directory).filter((name) => /^master\.key\./.test(name)))
      rmSync(join(place.directory, name));
    await putBack(place, before);
    const exit = await rotate(place);
    const keyId = nameMasterKey(first);
    const path = olderKeyPath(place.keyFile, keyId);
    const says = `30 secrets are sealed under master key ${keyId}, which is not available; put that key into ${path} `;
    expect(exit.code).toBe(1);
    expect(complaintsOf(exit)).toEqual([expect.stringContaining(says)]);
    writeFileSync(path, first.toString("hex"), { mode: 0o600 });
    expect(await rotate(place)).toMatchObject({ code: 0, stdout: expect.stringContaining("in all") });
    await expectSecrets(place, secrets);
  });

  it("lists 20 secrets that do not open, and counts the rest", async () => {
    const { place } = await leaveSecrets(25);
    await place.query(
      "update sealed_secrets set wrapped_data_key = zeroblob(60) where identity like 'things/%'",
    );
    const complaints = complaintsOf(await rotate(place));
    expect(complaints).toHaveLength(21);
    expect(complaints.at(0)).toContain("things/00001/seed cannot be decrypted");
    expect(complaints.at(-1)).toBe("qsp: 5 more secrets cannot be decrypted");
  });
});

describe("master-key rotate with keys in the environment", { timeout: 180_000 }, () => {
  const [keyOne, keyTwo] = ["1a".repeat(32), "2b".repeat(32)] as const;
  const one = valuesOf(keyOne);
  const two = valuesOf(keyTwo);

  it.each([
    [
      "QSP_MASTER_KEY to QSP_MASTER_KEY_NEXT",
      { QSP_MASTER_KEY: keyOne, QSP_MASTER_KEY_NEXT: keyTwo },
      /started without QSP_MASTER_KEY_NEXT/,
    ],
    [
      "the key of one command to the key of another",
      { QSP_MASTER_KEY_COMMAND: `printf ${keyOne}`, QSP_MASTER_KEY_NEXT_COMMAND: `printf '${keyTwo}'` },
      /set --master-key-command to it and unset --master-key-next-command/,
    ],
  ])("moves all secrets from %s, and creates no file", async (_what, env, says) => {
    const { place, secrets } = await leaveSecrets(5, { masterKey: one });
    expect(await rotate(place, env)).toMatchObject({ code: 0, stdout: expect.stringMatching(says) });
    expect(readdirSync(place.directory).filter((name) => name.startsWith("master.key"))).toEqual([]);
    await expectSecrets(place, secrets, two);
    await expect(place.open({ masterKey: one })).rejects.toThrow(storageError(/master key is not the one/));
  });

  it("does not disturb a store that was opened with both keys", async () => {
    const { place, secrets } = await leaveSecrets(5, { masterKey: one });
    const store = await place.open({ masterKey: valuesOf(keyOne, keyTwo) });
    await rewrap(place, valuesOf(keyOne, keyTwo));
    const added = secretsNamed("after", 1, 1);
    await putSecrets(store, added);
    expect(await readSecrets(store, secrets)).toEqual(secrets);
    await expectSecrets(place, added, two);
  });

  it("prevents a store that has only the old key from writing secrets with it, but no rows", async () => {
    const { place, secrets } = await leaveSecrets(5, { masterKey: one });
    const store = await place.open({ masterKey: one });
    await rewrap(place, valuesOf(keyOne, keyTwo));
    const outcomes = await Promise.allSettled([
      writeEntries(store, 1),
      putSecrets(store, secretsNamed("after", 1, 1)),
    ]);
    expect(outcomes).toMatchObject([{ status: "fulfilled" }, { reason: { code: "LOCKED" } }]);
    await expectSecrets(place, secrets, two);
  });

  it.each([
    ["without a next key", keyOne, undefined, /QSP_MASTER_KEY_NEXT/],
    ["to the key that it has", keyOne, keyOne, /must differ from the current one/],
    ["from a key other than the store's", "3c".repeat(32), keyTwo, /master key is not the one/],
  ])("fails %s, and changes nothing", async (_what, current, next, sentence) => {
    const { place } = await leaveSecrets(2, { masterKey: one });
    const before = await readSealed(place);
    await expect(rewrap(place, valuesOf(current, next))).rejects.toThrow(storageError(sentence));
    expect(await readSealed(place)).toEqual(before);
  });
});

describe("rewrapStore", { timeout: 180_000 }, () => {
  it("reports its progress up to the total, and what this run and earlier ones moved", async () => {
    const { place } = await leaveSecrets(1200);
    const all = (await readSealed(place)).length;
    const interrupted = rewrap(place, place.masterKey, () => {
      throw new Error("interrupted");
    });
    await expect(interrupted).rejects.toThrow("interrupted");
    const steps: [number, number][] = [];
    const result = await rewrap(place, place.masterKey, (...step) => steps.push(step));
    const masterKeyId = nameMasterKey(readKey(place));
    expect(result).toMatchObject({ moved: all - 501, underNewKey: all, damaged: [], masterKeyId });
    expect([steps.at(0), steps.at(-1)]).toEqual([
      [500, all - 501],
      [all - 501, all - 501],
    ]);
  });

  it("continues with the next key left by an interrupted rotation", async () => {
    const { place, secrets } = await leaveSecrets(3);
    const next = randomBytes(32);
    writeFileSync(`${place.keyFile}.next`, `${next.toString("hex")}\n`, { mode: 0o600 });
    expect((await rewrap(place)).masterKeyId).toBe(nameMasterKey(next));
    expect(readKey(place)).toEqual(next);
    await expectSecrets(place, secrets);
  });

  it("rejects a store that was never used", async () => {
    const place = await makeSqlitePlace();
    await (await openDatabase(place.location)).close();
    writeFileSync(place.keyFile, `${"0f".repeat(32)}\n`, { mode: 0o600 });
    await expect(rewrap(place)).rejects.toThrow(storageError(/was never used/));
  });
});

describe("an open store", { timeout: 180_000 }, () => {
  it.skipIf(process.platform === "win32")(
    "finds the new key if the rotation ends between its reads of the two files",
    async () => {
      const { place, secrets } = await leaveSecrets(1);
      const store = await place.open();
      const oldText = readFileSync(place.keyFile, "utf8");
      await rewrap(place);
      const newText = readFileSync(place.keyFile, "utf8");
      // As a moment earlier: the old key is in place. Once it has been read, the new one replaces it.
      writeFileSync(`${place.keyFile}.next`, newText, { mode: 0o600 });
      rmSync(place.keyFile);
      await once(startShell('mkfifo -m 600 "$1"', place.keyFile), "exit");
      startShell('exec 3>"$1"; printf %s "$2" >&3; mv "$1.next" "$1"', place.keyFile, oldText);
      expect(await readSecrets(store, secrets)).toEqual(secrets);
    },
  );
});

describeStores("two concurrent master key rotations", (makePlace) => {
  it.each([
    ["finishes first", () => {}],
    [
      "is finished and a third has begun",
      (next: string) => writeFileSync(next, "0f".repeat(32), { mode: 0o600 }),
    ],
  ])("lose no key and no secret if the other %s", async (_what, begin) => {
    const { place, secrets } = await leaveSecrets(1, { makePlace });
    const { keyFile } = place;
    let second = "";
    const isDone = onceAtEnd(() => {
      second = readFileSync(`${keyFile}.next`, "utf8");
      renameSync(`${keyFile}.next`, keyFile);
      begin(`${keyFile}.next`);
    });
    const failure = await failureOf(rewrap(place, place.masterKey, isDone));
    expect([undefined, StorageError]).toContain(failure?.constructor);
    expect(readFileSync(keyFile, "utf8")).toBe(second);
    await expectSecrets(place, secrets);
  });

  it("leave all secrets readable if they run side by side", async () => {
    const { place, secrets } = await leaveSecrets(1, { makePlace });
    const outcomes = await Promise.all([failureOf(rewrap(place)), failureOf(rewrap(place))]);
    expect(outcomes.filter((failure) => failure && !(failure instanceof StorageError))).toEqual([]);
    await expectSecrets(place, secrets);
  });
});

describeStores("a rejected rotation", (makePlace) => {
  it.each([
    ["is missing", ({ keyFile }: Place) => rmSync(keyFile), []],
    [
      "belongs to another store",
      ({ keyFile }: Place) => writeFileSync(keyFile, "ab".repeat(32)),
      ["master.key"],
    ],
  ])("leaves no key behind if the master key %s", async (_what, spoil, left) => {
    const { place } = await leaveSecrets(1, { makePlace });
    spoil(place);
    expect(await failureOf(rewrap(place))).toBeInstanceOf(StorageError);
    expect(readdirSync(place.directory).filter((name) => name.startsWith("master.key"))).toEqual(left);
  });
});

/** Acts at the first moment when a rotation has moved all secrets but not yet installed its key. */
function onceAtEnd(act: () => void): (moved: number, total: number) => void {
  let isDone = false;
  return (moved, total) => {
    if (isDone || moved < total) return;
    isDone = true;
    act();
  };
}

async function failureOf(call: Promise<unknown>): Promise<Error | undefined> {
  return call.then(
    () => undefined,
    (error: Error) => error,
  );
}

/** Restores the master keys and data keys of rows. */
async function putBack({ query }: Place, rows: readonly Row[]): Promise<void> {
  for (const { identity = null, master_key_id = null, wrapped_data_key = null } of rows)
    await query("update sealed_secrets set master_key_id = $1, wrapped_data_key = $2 where identity = $3", [
      ...[master_key_id, wrapped_data_key, identity],
    ]);
}

/** Lines on standard error, other than progress. */
function complaintsOf({ stderr }: Run): string[] {
  return stderr.split("\n").filter((line) => line.startsWith("qsp: "));
}

function startShell(script: string, ...args: string[]): ChildProcess {
  const child = spawn("sh", ["-c", script, "sh", ...args], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

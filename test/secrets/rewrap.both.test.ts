import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";
import { nameMasterKey } from "../../src/crypto/sealing.ts";
import { olderKeyPath } from "../../src/secrets/master-key.ts";
import { putSecrets, writeEntries } from "../support/entries.ts";
import { describeStores, makeSqlitePlace } from "../support/on-both.ts";
import { openDatabase } from "../support/open-store.ts";
import type { Run } from "../support/run-here.ts";
import { storageError } from "../support/storage-error.ts";
import {
  leaveSecrets,
  readKey,
  readPreviousKey,
  readSealed,
  readSecrets,
  rewrap,
  rotate,
  secretsNamed,
  valuesOf,
} from "./rewrap-place.ts";

describeStores("master-key rotate", (makePlace) => {
  it("rewraps every data key with a new master key, the only one that opens them, and changes no ciphertext", async () => {
    const place = await makePlace();
    const secrets = await leaveSecrets(place, 5);
    const [oldKey, before] = [readKey(place), await readSealed(place)];
    const exit = await rotate(place);
    const [newKey, after] = [readKey(place), await readSealed(place)];
    expect(exit).toMatchObject({ code: 0, stdout: expect.stringContaining(nameMasterKey(newKey)) });
    expect(newKey).not.toEqual(oldKey);
    expect(before.length).toBeGreaterThan(5);
    expect(after.map(({ identity, ciphertext }) => ({ identity, ciphertext }))).toEqual(
      before.map(({ identity, ciphertext }) => ({ identity, ciphertext })),
    );
    expect(new Set(before.map((row) => row.masterKeyId))).toEqual(new Set([nameMasterKey(oldKey)]));
    expect(new Set(after.map((row) => row.masterKeyId))).toEqual(new Set([nameMasterKey(newKey)]));
    const wrappedKeys = [...before, ...after].map((row) => row.wrappedDataKey);
    expect(new Set(wrappedKeys).size).toBe(wrappedKeys.length);

    expect(existsSync(`${place.keyFile}.next`)).toBe(false);
    expect(await readSecrets(await place.open(), secrets)).toEqual(secrets);
    const old = valuesOf(oldKey.toString("hex"));
    await expect(place.open({ masterKey: old })).rejects.toThrow(storageError(/master key is not the one/));
  });

  it("does not disturb an open store, whose new secrets end up under the new key", async () => {
    const place = await makePlace();
    const secrets = new Map(await leaveSecrets(place, 600));
    const store = await place.open();
    const [firstIdentity = ""] = secrets.keys();
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
      expect(await readSecrets(store, [firstIdentity])).toEqual(
        new Map([[firstIdentity, secrets.get(firstIdentity)]]),
      );
    }
    expect((await rotating).code).toBe(0);
    await putSecrets(store, secretsNamed("after", 1, 1));
    const keyIds = (await readSealed(place)).map(({ masterKeyId }) => masterKeyId);
    expect(new Set(keyIds)).toEqual(new Set([nameMasterKey(readKey(place))]));
    expect(written).toBeGreaterThan(1);
    expect(await readSecrets(store, secrets)).toEqual(secrets);
    expect(await readSecrets(await place.open(), secrets)).toEqual(secrets);
  });

  it("names a damaged secret, leaves it unchanged, and moves all others", async () => {
    const place = await makePlace();
    const secrets = new Map(await leaveSecrets(place, 5));
    const damaged = "things/00003/seed";
    secrets.delete(damaged);
    await place.query("update sealed_secrets set wrapped_data_key = $1 where identity = $2", [
      randomBytes(60),
      damaged,
    ]);
    const rowOf = async () => (await readSealed(place)).find(({ identity }) => identity === damaged);
    const before = await rowOf();
    expect(await rotate(place)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`qsp: ${damaged} `),
    });
    expect(await rowOf()).toEqual(before);
    expect(existsSync(`${place.keyFile}.next`)).toBe(false);
    expect(nameMasterKey(readPreviousKey(place))).toBe(before?.masterKeyId);
    const store = await place.open();
    expect(await readSecrets(store, secrets)).toEqual(secrets);
    await expect(store.readSecret(damaged)).rejects.toMatchObject({ code: "SEAL_BROKEN" });
  });
});

describe("master-key rotate with keys in files", { timeout: 180_000 }, () => {
  it("keeps all previous keys, readable only by their owner, and explains their use", async () => {
    const place = await makeSqlitePlace();
    await leaveSecrets(place, 2);
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

  it("also moves secrets under previous keys", async () => {
    const place = await makeSqlitePlace();
    const secrets = await leaveSecrets(place, 3);
    const identity = "things/00002/seed";
    const [mended] = await place.query("select * from sealed_secrets where identity = $1", [identity]);
    await rewrap(place);
    await place.query(
      "update sealed_secrets set master_key_id = $1, wrapped_data_key = $2 where identity = $3",
      [mended?.master_key_id ?? null, mended?.wrapped_data_key ?? null, identity],
    );
    expect(await rewrap(place)).toMatchObject({ damaged: [], outOfReach: [] });
    expect(await readSecrets(await place.open(), secrets)).toEqual(secrets);
  });

  it("counts secrets whose key is unavailable, and moves them once it is available", async () => {
    const place = await makeSqlitePlace();
    const secrets = await leaveSecrets(place, 30);
    const first = readKey(place);
    const before = await place.query("select * from sealed_secrets where identity like 'things/%'");
    await rewrap(place);
    rmSync(`${place.keyFile}.previous`);
    for (const { identity, master_key_id, wrapped_data_key } of before)
      await place.query(
        "update sealed_secrets set master_key_id = $1, wrapped_data_key = $2 where identity = $3",
        [master_key_id ?? null, wrapped_data_key ?? null, identity ?? null],
      );
    const exit = await rotate(place);
    expect(exit.code).toBe(1);
    expect(complaintsOf(exit)).toEqual([
      expect.stringContaining(
        `30 secrets are sealed under master key ${nameMasterKey(first)}, which is not available; put that key into ${olderKeyPath(place.keyFile, nameMasterKey(first))} `,
      ),
    ]);
    writeFileSync(olderKeyPath(place.keyFile, nameMasterKey(first)), first.toString("hex"), { mode: 0o600 });
    expect(await rotate(place)).toMatchObject({ code: 0, stdout: expect.stringContaining("in all") });
    expect(await readSecrets(await place.open(), secrets)).toEqual(secrets);
  });

  it("lists 20 secrets that do not open, and counts the rest", async () => {
    const place = await makeSqlitePlace();
    await leaveSecrets(place, 25);
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

  it("moves all secrets from QSP_MASTER_KEY to QSP_MASTER_KEY_NEXT, and creates no file", async () => {
    const place = await makeSqlitePlace();
    const secrets = await leaveSecrets(place, 5, one);
    const exit = await rotate(place, { QSP_MASTER_KEY: keyOne, QSP_MASTER_KEY_NEXT: keyTwo });
    expect(exit).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/started without QSP_MASTER_KEY_NEXT/),
    });
    expect([existsSync(place.keyFile), existsSync(`${place.keyFile}.next`)]).toEqual([false, false]);
    expect(await readSecrets(await place.open({ masterKey: two }), secrets)).toEqual(secrets);
    await expect(place.open({ masterKey: one })).rejects.toThrow(storageError(/master key is not the one/));
  });

  it("rotates with commands that print both keys, and names them", async () => {
    const place = await makeSqlitePlace();
    const secrets = await leaveSecrets(place, 3, one);
    const exit = await rotate(place, {
      QSP_MASTER_KEY_COMMAND: `printf ${keyOne}`,
      QSP_MASTER_KEY_NEXT_COMMAND: `printf '${keyTwo}'`,
    });
    expect(exit).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/set --master-key-command to it and unset --master-key-next-command/),
    });
    expect(await readSecrets(await place.open({ masterKey: two }), secrets)).toEqual(secrets);
  });

  it("does not disturb a store that was opened with both keys", async () => {
    const place = await makeSqlitePlace();
    const secrets = await leaveSecrets(place, 5, one);
    const store = await place.open({ masterKey: valuesOf(keyOne, keyTwo) });
    await rewrap(place, valuesOf(keyOne, keyTwo));
    const added = secretsNamed("after", 1, 1);
    await putSecrets(store, added);
    expect(await readSecrets(store, secrets)).toEqual(secrets);
    expect(await readSecrets(await place.open({ masterKey: two }), added)).toEqual(added);
  });

  it("prevents a store that has only the old key from writing secrets with it", async () => {
    const place = await makeSqlitePlace();
    const secrets = await leaveSecrets(place, 5, one);
    const store = await place.open({ masterKey: one });
    await rewrap(place, valuesOf(keyOne, keyTwo));
    await expect(putSecrets(store, secretsNamed("after", 1, 1))).rejects.toMatchObject({
      code: "LOCKED",
    });
    expect(await readSecrets(await place.open({ masterKey: two }), secrets)).toEqual(secrets);
  });

  it("does not prevent such a store from writing rows while others try to write secrets", async () => {
    const place = await makeSqlitePlace();
    await leaveSecrets(place, 1, one);
    const store = await place.open({ masterKey: one });
    await rewrap(place, valuesOf(keyOne, keyTwo));
    const outcomes = await Promise.allSettled([
      writeEntries(store, 1),
      putSecrets(store, secretsNamed("after", 1, 1)),
    ]);
    expect(outcomes).toMatchObject([{ status: "fulfilled" }, { reason: { code: "LOCKED" } }]);
  });

  it.each([
    ["without a next key", keyOne, undefined, /QSP_MASTER_KEY_NEXT/],
    ["to the key that it has", keyOne, keyOne, /must differ from the current one/],
    ["from a key other than the store's", "3c".repeat(32), keyTwo, /master key is not the one/],
  ])("fails %s, and changes nothing", async (_what, current, next, sentence) => {
    const place = await makeSqlitePlace();
    await leaveSecrets(place, 2, one);
    const before = await readSealed(place);
    await expect(rewrap(place, valuesOf(current, next))).rejects.toThrow(storageError(sentence));
    expect(await readSealed(place)).toEqual(before);
  });
});

describe("rewrapStore", { timeout: 180_000 }, () => {
  it("reports its progress up to the total, and how many secrets it moved", async () => {
    const place = await makeSqlitePlace();
    await leaveSecrets(place, 1200);
    const all = (await readSealed(place)).length;
    const steps: [number, number][] = [];
    const { moved, damaged, masterKeyId } = await rewrap(place, place.masterKey, (done, total) =>
      steps.push([done, total]),
    );
    expect({ moved, damaged, masterKeyId }).toEqual({
      moved: all,
      damaged: [],
      masterKeyId: nameMasterKey(readKey(place)),
    });
    expect(steps.at(0)).toEqual([501, all]);
    expect(steps.at(-1)).toEqual([all, all]);
  });

  it("distinguishes what this run moved from what an earlier run had moved", async () => {
    const place = await makeSqlitePlace();
    await leaveSecrets(place, 1200);
    const all = (await readSealed(place)).length;
    const interrupted = rewrap(place, place.masterKey, () => {
      throw new Error("interrupted");
    });
    await expect(interrupted).rejects.toThrow("interrupted");
    expect(await rewrap(place)).toMatchObject({ moved: all - 501, underNewKey: all });
  });

  it("continues with the next key left by an interrupted rotation", async () => {
    const place = await makeSqlitePlace();
    const secrets = await leaveSecrets(place, 3);
    const next = randomBytes(32);
    writeFileSync(`${place.keyFile}.next`, `${next.toString("hex")}\n`, { mode: 0o600 });
    expect((await rewrap(place)).masterKeyId).toBe(nameMasterKey(next));
    expect(readKey(place)).toEqual(next);
    expect(await readSecrets(await place.open(), secrets)).toEqual(secrets);
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
      const place = await makeSqlitePlace();
      const secrets = await leaveSecrets(place, 1);
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

/** Lines on standard error, other than progress. */
function complaintsOf({ stderr }: Run): string[] {
  return stderr.split("\n").filter((line) => line.startsWith("qsp: "));
}

function startShell(script: string, ...args: string[]): ChildProcess {
  const child = spawn("sh", ["-c", script, "sh", ...args], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

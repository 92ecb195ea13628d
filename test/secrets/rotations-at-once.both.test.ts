import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { StorageError } from "../../src/database/store-error.ts";
import { putSecrets, readSecretText } from "../support/entries.ts";
import { describeStores, type Place } from "../support/on-both.ts";
import { rewrap } from "./rewrap-place.ts";

describeStores("two concurrent master key rotations", (makePlace) => {
  it("both succeed if the other finishes first, with all secrets under the installed key", async () => {
    const place = await leaveSecret(await makePlace());
    const { keyFile } = place;
    const isDone = onceAtEnd(() => renameSync(`${keyFile}.next`, keyFile));
    const failure = await failureOf(rewrap(place, place.masterKey, isDone));
    expect([undefined, StorageError]).toContain(failure?.constructor);
    expect(await readSecret(place)).toBe("secret");
  });

  it("lose no key if the other is finished and a third has begun", async () => {
    const place = await leaveSecret(await makePlace());
    const { keyFile } = place;
    const third = `${"0f".repeat(32)}\n`;
    let second = "";
    const isDone = onceAtEnd(() => {
      second = readFileSync(`${keyFile}.next`, "utf8");
      renameSync(`${keyFile}.next`, keyFile);
      writeFileSync(`${keyFile}.next`, third, { mode: 0o600 });
    });
    await failureOf(rewrap(place, place.masterKey, isDone));
    expect(readFileSync(keyFile, "utf8")).toBe(second);
    expect(await readSecret(place)).toBe("secret");
  });

  it("leave all secrets readable if they run side by side", async () => {
    const place = await leaveSecret(await makePlace());
    const outcomes = await Promise.all([failureOf(rewrap(place)), failureOf(rewrap(place))]);
    expect(outcomes.filter((failure) => failure && !(failure instanceof StorageError))).toEqual([]);
    expect(await readSecret(place)).toBe("secret");
  });
});

describeStores("a rejected rotation", (makePlace) => {
  it("leaves no key behind if the master key is missing", async () => {
    const place = await leaveSecret(await makePlace());
    rmSync(place.keyFile);
    expect(await failureOf(rewrap(place))).toBeInstanceOf(StorageError);
    expect(readdirSync(place.directory).filter((name) => name.startsWith("master.key"))).toEqual([]);
  });

  it("leaves no key behind if the master key belongs to another store", async () => {
    const place = await leaveSecret(await makePlace());
    writeFileSync(place.keyFile, "ab".repeat(32), { mode: 0o600 });
    expect(await failureOf(rewrap(place))).toBeInstanceOf(StorageError);
    expect(existsSync(`${place.keyFile}.next`)).toBe(false);
  });
});

async function leaveSecret(place: Place): Promise<Place> {
  const store = await place.open();
  await putSecrets(store, [["tests/1", "secret"]]);
  await store.close();
  return place;
}

/** The secret, as the next program that opens the store reads it. */
async function readSecret(place: Place): Promise<string | undefined> {
  return readSecretText(await place.open(), "tests/1");
}

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

import { randomBytes } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { expect, it } from "vitest";
import { putSecrets, readSecretText } from "../support/entries.ts";
import { describeStores, type MakePlace, type Place } from "../support/on-both.ts";
import { storageError } from "../support/storage-error.ts";
import { valuesOf } from "./rewrap-place.ts";

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

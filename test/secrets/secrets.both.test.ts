import { randomBytes } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { expect, it } from "vitest";
import { putSecrets, readSecretText } from "../support/entries.ts";
import { describeStores, type MakePlace, type Place } from "../support/on-both.ts";
import { storageError } from "../support/storage-error.ts";
import { valuesOf } from "./rewrap-place.ts";

const first = "things/1/seed";
const second = "things/2/seed";
const sealBroken = { code: "SEAL_BROKEN" };

describeStores("a secret", (makePlace) => {
  it("is returned as stored, even after reopening", async () => {
    const place = await makePlace();
    const store = await place.open();
    await putSecrets(store, [[first, "alpha"]]);
    expect(await readSecretText(store, first)).toBe("alpha");
    await store.close();
    expect(await readSecretText(await place.open(), first)).toBe("alpha");
  });

  it.each([0, 4096])("of %i bytes is returned", async (length) => {
    const store = await (await makePlace()).open();
    const secret = randomBytes(length);
    await store.write(({ putSecret }) => putSecret(first, secret));
    expect(Buffer.from((await store.readSecret(first)) ?? [])).toEqual(secret);
    expect(await store.readSecret(first)).toBeDefined();
  });

  it("can be read in the transaction that stores it", async () => {
    const store = await (await makePlace()).open();
    const found = await store.write(async ({ putSecret, readSecret }) => {
      await putSecret(first, Buffer.from("alpha"));
      return readSecret(first);
    });
    expect(Buffer.from(found ?? []).toString()).toBe("alpha");
  });

  it("is not stored in the clear", async () => {
    const { query } = await openWithSecrets(makePlace);
    const rows = await query("select * from sealed_secrets where identity = $1", [first]);
    const bytes = rows.flatMap((row) => Object.values(row)).filter((value) => value instanceof Uint8Array);
    expect(bytes).toHaveLength(2);
    expect(bytes.some((value) => Buffer.from(value).includes("alpha"))).toBe(false);
  });

  it("is sealed with its own data key", async () => {
    const { query } = await openWithSecrets(makePlace, { [first]: "same", [second]: "same" });
    const rows = await query(
      "select wrapped_data_key, ciphertext from sealed_secrets where identity like 'things/%'",
    );
    const values = rows.flatMap((row) => Object.values(row)).map((value) => JSON.stringify(value));
    expect(new Set(values).size).toBe(4);
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
    expect(await query("select identity from sealed_secrets where identity like 'things/%'")).toEqual([
      { identity: second },
    ]);
    expect(await readSecretText(await place.open(), second)).toBe("beta");
  });

  it("is undefined if it was never stored", async () => {
    const { store } = await openWithSecrets(makePlace);
    expect(await store.readSecret("things/3/seed")).toBeUndefined();
  });
});

describeStores("a tampered secret", (makePlace) => {
  it("does not open if another's row was copied over it", async () => {
    const { store, query } = await openWithSecrets(makePlace);
    await query(
      `update sealed_secrets set
         wrapped_data_key = (select wrapped_data_key from sealed_secrets where identity = $1),
         ciphertext = (select ciphertext from sealed_secrets where identity = $1)
       where identity = $2`,
      [second, first],
    );
    await expect(store.readSecret(first)).rejects.toMatchObject(sealBroken);
    expect(await readSecretText(store, second)).toBe("beta");
  });

  it("does not open under a different identity", async () => {
    const { store, query } = await openWithSecrets(makePlace);
    await query("update sealed_secrets set identity = 'things/3/seed' where identity = $1", [first]);
    await expect(store.readSecret("things/3/seed")).rejects.toMatchObject(sealBroken);
  });

  it.each(["ciphertext", "wrapped_data_key"])("does not open with a changed %s", async (column) => {
    const { store, query } = await openWithSecrets(makePlace);
    await query(`update sealed_secrets set ${column} = $1 where identity = $2`, [new Uint8Array(60), first]);
    await expect(store.readSecret(first)).rejects.toMatchObject(sealBroken);
    expect(await readSecretText(store, second)).toBe("beta");
  });
});

describeStores("a store", (makePlace) => {
  it("does not open with a wrong master key, which changes nothing", async () => {
    const place = await leaveWithSecrets(makePlace);
    const wrong = valuesOf("ab".repeat(32));
    await expect(place.open({ masterKey: wrong })).rejects.toThrow(wrongMasterKey);
    expect(await readSecretText(await place.open(), first)).toBe("alpha");
  });

  it("does not open without its master key, and none is created", async () => {
    const place = await leaveWithSecrets(makePlace);
    rmSync(place.keyFile);
    await expect(place.open()).rejects.toThrow(storageError(/is missing/));
    expect(existsSync(place.keyFile)).toBe(false);
  });
});

const wrongMasterKey = storageError(/master key is not the one/);

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

import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { expect, it } from "vitest";
import { putSecrets, readSecretText } from "../support/entries.ts";
import { describeStores, type MakePlace, type Place, type Value } from "../support/on-both.ts";
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

  it.each([0, 1, 4096])("of %i bytes is returned", async (length) => {
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
    const values = rows.flatMap((row) => Object.values(row)).map(hexOf);
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

  it.each([
    { what: "the nonce of its ciphertext", column: "ciphertext", change: flipBitAt(0) },
    { what: "its ciphertext", column: "ciphertext", change: flipBitAt(12) },
    { what: "the tag of its ciphertext", column: "ciphertext", change: flipBitAt(-1) },
    { what: "the nonce of its data key", column: "wrapped_data_key", change: flipBitAt(0) },
    { what: "its data key", column: "wrapped_data_key", change: flipBitAt(12) },
    { what: "the tag of its data key", column: "wrapped_data_key", change: flipBitAt(-1) },
    { what: "its master key ID", column: "master_key_id", change: flipDigit },
  ])("does not open with a flipped bit in $what, but its neighbour does", async ({ column, change }) => {
    const { place, store } = await openWithSecrets(makePlace);
    await tamper(place, column, change);
    await expect(store.readSecret(first)).rejects.toMatchObject(sealBroken);
    expect(await readSecretText(store, second)).toBe("beta");
    await expect((await place.open()).readSecret(first)).rejects.toMatchObject(sealBroken);
  });

  it.each([
    { what: "no ciphertext", column: "ciphertext", change: () => new Uint8Array() },
    { what: "a truncated ciphertext", column: "ciphertext", change: withoutLastByte },
    { what: "no data key", column: "wrapped_data_key", change: () => new Uint8Array() },
    { what: "a truncated data key", column: "wrapped_data_key", change: withoutLastByte },
  ])("does not open with $what", async ({ column, change }) => {
    const { place, store } = await openWithSecrets(makePlace);
    await tamper(place, column, change);
    await expect(store.readSecret(first)).rejects.toMatchObject(sealBroken);
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
    await expect(place.open()).rejects.toThrow(storageError(/is missing/));
  });

  it("does not open if its root key was changed", async () => {
    const place = await leaveWithSecrets(makePlace);
    await tamper(place, "ciphertext", flipBitAt(12), "store/root-key");
    await expect(place.open()).rejects.toThrow(storageError(/root key was changed outside the server/));
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

/** Changes a column of a sealed secret directly in the database. */
async function tamper(
  { query }: Place,
  column: string,
  change: (value: Value | undefined) => Value,
  identity: string = first,
): Promise<void> {
  const [row] = await query(`select ${column} from sealed_secrets where identity = $1`, [identity]);
  const values = [change(row?.[column]), identity];
  await query(`update sealed_secrets set ${column} = $1 where identity = $2`, values);
}

/** @param position from the end if negative */
function flipBitAt(position: number) {
  return (value: Value | undefined): Uint8Array => {
    const bytes = bytesOf(value);
    return bytes.with(position, (bytes.at(position) ?? 0) ^ 1);
  };
}

function flipDigit(value: Value | undefined): string {
  const [digit = "", ...others] = String(value);
  return [(Number.parseInt(digit, 16) ^ 1).toString(16), ...others].join("");
}

function withoutLastByte(value: Value | undefined): Uint8Array {
  return bytesOf(value).slice(0, -1);
}

function bytesOf(value: Value | undefined): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw new Error(`expected bytes, found ${value}`);
}

function hexOf(value: Value): string {
  return Buffer.from(bytesOf(value)).toString("hex");
}

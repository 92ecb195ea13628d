/** Keys in the store, without a server. */
import { describe, expect, it } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { systemPrincipal } from "../../../src/records/ownership.ts";
import { intact } from "../../../src/records/table-declaration.ts";
import { verifySecrets } from "../../../src/secrets/verify-secrets.ts";
import { storeKey } from "../../../src/services/kms/create.ts";
import { listUnindexed } from "../../../src/services/kms/label-index.ts";
import { createKmsStore } from "../../../src/services/kms/store.ts";
import { verifyKeys } from "../../../src/services/kms/verify-keys.ts";
import type { Store } from "../../../src/store/store.ts";
import { describeStores, makeSqlitePlace, type Place } from "../../support/on-both.ts";
import { openCounted } from "../../support/thread-messages.ts";
import { present } from "../answers.ts";
import { listPlan } from "./list-plan.ts";

const provider = await createCryptoProvider("openssl");
const { secretKey } = await provider.generateKeyPair("ML-DSA-44");

interface Added {
  readonly alias?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly name?: string;
}

/**
 * Adds keys that share one key pair, which is quick.
 *
 * @returns their IDs
 */
async function addKeys(store: Store, added: readonly Added[]): Promise<string[]> {
  const keys = createKmsStore(store);
  const common = { alias: "", algorithm: "ML-DSA-44", usage: "SIGN", name: "", labels: {} } as const;
  return store.write(async (transaction) => {
    const made: string[] = [];
    for (const fields of added) {
      const input = { ...common, ...fields, rotationPeriodSeconds: undefined, secretKey };
      const deps = { keys, now: () => new Date() };
      const { keyId = "" } = await storeKey(deps, transaction, { ...input, principal: systemPrincipal });
      made.push(keyId);
    }
    return made;
  });
}

/** Returns the aliases of the keys with a label, and their number according to the list. */
async function findByLabel(store: Store, label: string) {
  const keys = createKmsStore(store);
  const query = { filter: { label } };
  const { rows } = await keys.list({ limit: 100, after: 0 }, query);
  const found = rows.map(({ record }) => record.alias);
  expect(await keys.count(query)).toBe(found.length);
  return found;
}

const odd = 'quote " backslash \\ key 🔑 é / %';

async function fill(place: Place): Promise<Store> {
  const store = await place.open();
  await addKeys(store, [
    { alias: "plain", labels: { team: "payments", stage: "test" } },
    { alias: "named", labels: { team: "payments" }, name: "release" },
    { alias: "odd", labels: { team: odd } },
    { alias: "other", labels: { team: "Payments" } },
  ]);
  return store;
}

/** The label index: lists find keys by it, and the labels in the records decide. */
describeStores("labels", (makePlace) => {
  it("find keys and versions of names", async () => {
    const store = await fill(await makePlace());
    expect(await findByLabel(store, "team=payments")).toEqual(["plain", "named"]);
    expect(await findByLabel(store, "stage=test")).toEqual(["plain"]);
    expect(await findByLabel(store, `team=${odd}`)).toEqual(["odd"]);
    expect(await findByLabel(store, "team=pay")).toEqual([]);
  });

  it("of a changed name find its keys only by the new labels", async () => {
    const store = await fill(await makePlace());
    const { names } = createKmsStore(store);
    const name = present(await names.find("system", "release"));
    await store.write((transaction) =>
      names.update(transaction, intact(name), { labels: { team: "build" } }),
    );
    expect(await findByLabel(store, "team=payments")).toEqual(["plain"]);
    expect(await findByLabel(store, "team=build")).toEqual(["named"]);
  });

  it("cannot be given to a key by tampering with the index", async () => {
    const place = await makePlace();
    const store = await fill(place);
    await place.query(
      `insert into kms_labels select '"team":"trusted"', owner, key_id, '' from kms_keys where alias = 'other'`,
    );
    expect(await findByLabel(store, "team=trusted")).toEqual([]);
  });

  it("that are missing from the index are found by its verification", async () => {
    const place = await makePlace();
    const store = await fill(place);
    const [keyId] = await addKeys(store, [{ alias: "hidden", labels: { team: "payments" } }]);
    expect(await listUnindexed(store.reader, place.location.kind)).toEqual([]);
    await place.query(`delete from kms_labels where key_id = '${keyId}' or key_name = 'release'`);
    expect(await listUnindexed(store.reader, place.location.kind)).toEqual(["name release", `key ${keyId}`]);
  });
});

describe("labels in SQLite", () => {
  it("are searched in the index: no table is scanned completely", async () => {
    const place = await makeSqlitePlace();
    const store = await fill(place);
    const query = { filter: { label: "team=payments" } };
    const plan = await listPlan(place, (reader) =>
      createKmsStore({ ...store, reader }).list({ limit: 100, after: 0 }, query),
    );
    expect(plan.filter((step) => /^SCAN (?!CONSTANT)/.test(step))).toEqual([]);
    expect(plan.join("\n")).toContain("kms_labels");
  });
});

async function verifyAll(store: Store, { location, masterKey }: Place) {
  const deps = { store, keys: createKmsStore(store), provider, location, masterKey };
  const keys = await verifyKeys({ ...deps, onProgress: () => {} });
  return { keys, secrets: await verifySecrets(store, () => {}, keys.opened) };
}

describe("key verification", { timeout: 180_000 }, () => {
  it("needs as many reads for 400 keys as for 10", async () => {
    const place = await makeSqlitePlace();
    const { store, countMessages } = await openCounted(() => place.open());
    await addKeys(store, Array(10).fill({}));
    const few = await countMessages(() => verifyAll(store, place));
    await addKeys(store, Array(390).fill({}));
    const many = await countMessages(() => verifyAll(store, place));
    // The store also has background work of its own.
    expect(many).toBeLessThan(few + 100);
  });

  it("finds one swapped secret among 1,200 keys, which threads check", async () => {
    const place = await makeSqlitePlace();
    const store = await place.open();
    const keyIds = await addKeys(store, Array(1200).fill({}));
    expect(await verifyAll(store, place)).toMatchObject({
      keys: { checked: 1200, faults: [] },
      secrets: { checked: 1202, broken: [] },
    });
    const other = (await provider.generateKeyPair("ML-DSA-44")).secretKey.exportSeed() ?? new Uint8Array();
    const identity = `kms_keys/${keyIds[777]}/secret-key`;
    await store.write(async ({ eraseSecret, putSecret }) => {
      await eraseSecret(identity);
      await putSecret(identity, other);
    });
    const { keys, secrets } = await verifyAll(store, place);
    expect(keys.faults).toEqual([
      { keyId: keyIds[777], reason: "its secret key was changed outside the server" },
    ]);
    expect(secrets.broken).toEqual([]);
  });
});

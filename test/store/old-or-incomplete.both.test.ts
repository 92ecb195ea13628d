/** A store from an older version, and an incomplete one, which recreates nothing that would hide the loss. */
import { copyFileSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { TableOwner } from "../../src/database/schema.ts";
import { StoreFailureError } from "../../src/database/store-error.ts";
import { openStoreOf } from "../../src/store/open-store-of.ts";
import { putSecrets, readSecretText, writeEntries } from "../support/entries.ts";
import { describeStores, makeSqlitePlace, openNew, type Place } from "../support/on-both.ts";
import { coreTables } from "../support/open-store.ts";
import { storageError } from "../support/storage-error.ts";

const identities = { "root key": "store/root-key", "key that signs": "store/audit-signing-key" };

describeStores("a used store", (makePlace) => {
  describe.each(Object.entries(identities))("whose %s", (name, identity) => {
    it.each([
      ["with its audit log", []],
      ["with only checkpoints of its audit log", ["audit_entries", "audit_head"]],
    ])("is missing does not open %s, and no new one is created", async (_what, lost) => {
      const { place, store } = await openNew(makePlace);
      await writeEntries(store, 3);
      await store.close();
      for (const table of lost) await place.query(`delete from ${table}`);
      await place.query("delete from sealed_secrets where identity = $1", [identity]);
      await expect(place.open()).rejects.toThrow(storageError(new RegExp(`${name}.* is missing.*backup`)));
      const found = await place.query("select identity from sealed_secrets where identity = $1", [identity]);
      expect(found).toEqual([]);
    });

    it("was changed does not open, and the error is not mistaken for a wrong master key", async () => {
      const place = await makePlace();
      await (await place.open()).close();
      const zeros = new Uint8Array(60);
      await place.query("update sealed_secrets set ciphertext = $2 where identity = $1", [identity, zeros]);
      await expect(place.open()).rejects.toThrow(
        storageError(new RegExp(`${name}.* was changed outside the server`)),
      );
    });
  });

  it("has an invalid audit log if the whole log is missing and keys exist", async () => {
    const { place, store } = await openNew(makePlace);
    await place.query(`insert into kms_keys (position, key_id, alias, algorithm, key_usage, key_state, public_key, owner,
      created_at_ms, record_tag) values
      (1, 'key-1', 'a', 'ML-DSA-44', 'SIGN', 'ACTIVE', '', 'ada', 0, '')`);
    expect(await store.verifyAudit()).toMatchObject({ valid: false, firstBrokenSequence: 1, entries: 0 });
  });
});

describeStores("a secret under an unavailable master key", (makePlace) => {
  it("does not count as damaged if the store's root is under that key: the master key was rotated", async () => {
    const { place, store } = await openNew(makePlace);
    await putSecrets(store, [["things/1/seed", "alpha"]]);
    await place.query("update sealed_secrets set master_key_id = 'another'");
    const locked = { constructor: StoreFailureError, code: "LOCKED" };
    await expect(store.readSecret("things/1/seed")).rejects.toMatchObject(locked);
    await expect(putSecrets(store, [["things/2/seed", "beta"]])).rejects.toMatchObject(locked);
  });

  it("counts as damaged if nothing else is under that key", async () => {
    const { place, store } = await openNew(makePlace);
    await putSecrets(store, [["things/1/seed", "alpha"]]);
    await place.query("update sealed_secrets set master_key_id = 'another' where identity = 'things/1/seed'");
    await expect(store.readSecret("things/1/seed")).rejects.toMatchObject({ code: "SEAL_BROKEN" });
  });
});

describe("a SQLite store in use", () => {
  it.each([
    ["file was removed", (path: string) => rmSync(path)],
    [
      "file was replaced",
      (path: string) => {
        copyFileSync(path, `${path}.new`);
        renameSync(`${path}.new`, path);
      },
    ],
    ["log was removed", (path: string) => rmSync(`${path}-wal`)],
  ])("rejects writes once its %s, but continues to read", async (_how, change) => {
    const { place, store } = await openNew(makeSqlitePlace);
    await putSecrets(store, [["things/1/seed", "alpha"]]);
    change(join(place.directory, "qsp.db"));
    await expect(writeEntries(store, 1)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(await readSecretText(store, "things/1/seed")).toBe("alpha");
  });

  it("keeps no trace of an erased secret in its files, while it is open", async () => {
    const { place, store } = await openNew(makeSqlitePlace);
    await putSecrets(store, [["things/1/seed", "alpha"]]);
    const [row] = await place.query("select ciphertext from sealed_secrets where identity = 'things/1/seed'");
    const ciphertext = Buffer.from(row?.ciphertext as Uint8Array);
    const isInFiles = () =>
      readdirSync(place.directory).some((name) =>
        readFileSync(join(place.directory, name)).includes(ciphertext),
      );
    expect(isInFiles()).toBe(true);
    await store.write(({ eraseSecret }) => eraseSecret("things/1/seed"));
    await expect.poll(isInFiles).toBe(false);
  });
});

/** Tables added by steps 0004. */
const addedLast = ["kms_labels"];
const added = [
  ...["kms_names", "kms_grants", "kms_imports", "oauth_clients", ...addedLast],
  ...["identity_entries", "identity_head", "identity_checkpoints"],
];

/** The tables as created by steps numbered below `next`, without the tables in `later`. */
function ownersBefore(next: string, later: readonly string[]): TableOwner[] {
  return coreTables.owners.map((owner) => ({
    ...owner,
    tables: Object.fromEntries(Object.entries(owner.tables).filter(([name]) => !later.includes(name))),
    steps: Object.fromEntries(Object.entries(owner.steps).filter(([name]) => name < next)),
  }));
}

/** Creates a store with an older version's tables. */
async function makeOldStore({ location, masterKey }: Place, owners: TableOwner[]): Promise<void> {
  const provider = await createCryptoProvider("openssl");
  onTestFinished(() => provider.close());
  const store = await openStoreOf({ owners, location, masterKey, provider });
  await store.close();
}

describeStores("a store from an older version", (makePlace) => {
  it("gets the new tables and columns, and keeps its rows", async () => {
    const place = await makePlace();
    await makeOldStore(place, ownersBefore("0002", added));
    await place.query("insert into list_counts (list_name, row_count) values ('an older list', 7)");
    const store = await place.open();
    const rows = await place.query("select row_count from list_counts where list_name = 'an older list'");
    expect(rows).toMatchObject([{ row_count: 7 }]);
    for (const table of added)
      expect(await place.query(`select count(*) as n from ${table}`)).toHaveLength(1);
    await writeEntries(store, 1);
    expect(await store.verifyAudit()).toMatchObject({ valid: true, entries: 1 });
    // Changes that predate the identity log have no entries in it.
    expect(await store.verifyIdentityLog()).toMatchObject({ valid: true, entries: 0 });
  });

  it("gets an index of the labels of its keys and names", async () => {
    const place = await makePlace();
    await makeOldStore(place, ownersBefore("0004", addedLast));
    await place.query(
      `insert into kms_keys (position, key_id, alias, algorithm, key_usage, key_state, public_key, owner, created_at_ms,
          record_tag, labels)
        values (1, 'one', '', 'ML-DSA-44', 'SIGN', 'ENABLED', $1, 'ada', 0, '', $2), (2, 'two', '', 'ML-DSA-44', 'SIGN',
          'ENABLED', $1, 'ada', 0, '', $3)`,
      [Uint8Array.of(1), '{"team":"payments","stage":"a \\"b\\""}', '{"damaged":'],
    );
    await place.query(
      `insert into kms_names (position, owner, key_name, algorithm, labels, is_import_only, versions, signs_mu,
          created_at_ms, record_tag)
        values (1, 'ada', 'release', 'ML-DSA-44', '{"team":"build"}', 0, 0, 0, 0, '')`,
    );
    await (await place.open()).close();
    expect(await place.query("select * from kms_labels order by key_id, member")).toEqual([
      { member: '"team":"build"', owner: "ada", key_id: "", key_name: "release" },
      { member: '"stage":"a \\"b\\""', owner: "ada", key_id: "one", key_name: "" },
      { member: '"team":"payments"', owner: "ada", key_id: "one", key_name: "" },
    ]);
  });
});

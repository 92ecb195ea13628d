/**
 * A store from an older version: it opens with the tables that came later, and its keys and log are intact.
 */
import { expect, it, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { TableOwner } from "../../src/database/schema.ts";
import { openStoreOf } from "../../src/store/open-store-of.ts";
import { writeEntries } from "../support/entries.ts";
import { describeStores, type Place } from "../support/on-both.ts";
import { coreTables } from "../support/open-store.ts";

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

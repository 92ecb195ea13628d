/** Lists ordered by a text, on both databases. */
import { sql } from "kysely";
import { expect, it } from "vitest";
import { createKmsStore } from "../../src/services/kms/store.ts";
import type { KeyName } from "../../src/services/kms/tables.ts";
import { describeStores, makePostgresPlace, type Place } from "../support/on-both.ts";
import { describePostgres } from "../support/postgres.ts";

const byName = { name: "by name", orderedBy: "key_name", where: sql<boolean>`1 = 1` };
const principal = (owner: string) => ({ user: owner, userId: owner, owner });

const keyName: Omit<KeyName, "owner" | "name"> = {
  algorithm: "ML-DSA-65",
  labels: {},
  rotationPeriodSeconds: undefined,
  nextRotationAt: undefined,
  destroyAfterSeconds: undefined,
  isImportOnly: false,
  signsMu: false,
  versions: 0,
  primaryKeyId: undefined,
  createdAt: new Date(0),
};

/** Opens the key names of a place that has some. */
async function openNames(place: Place, rows: readonly (readonly [owner: string, name: string])[]) {
  const store = await place.open();
  const { names } = createKmsStore(store);
  await store.write(async (transaction) => {
    for (const [owner, name] of rows) await names.insert(transaction, { ...keyName, owner, name });
  });
  return async (owner: string, after: number) => {
    const { rows } = await names.list(
      { limit: 9, after },
      { principal: principal(owner), narrowing: byName },
    );
    return rows.map(({ record }) => record.name);
  };
}

describeStores("a list ordered by name", (makePlace) => {
  it("is empty for a forged page token that names another owner's row", async () => {
    const rows = [["ada", "a"] as const, ["bob", "m"] as const, ["ada", "z"] as const];
    const list = await openNames(await makePlace(), rows);
    expect([await list("ada", 0), await list("ada", 1), await list("ada", 3)]).toEqual([
      ["a", "z"],
      ["z"],
      [],
    ]);
    // Otherwise the page would start after "m" and reveal that bob has a name between "a" and "z".
    expect(await list("ada", 2)).toEqual([]);
  });
});

describePostgres("a list ordered by name, in a database with a language-specific collation", () => {
  it("is still in byte order", async () => {
    const place = await makePostgresPlace();
    const list = await openNames(place, [...["b", "B", "a-b", "ab"].map((name) => ["ada", name] as const)]);
    await place.query('alter table kms_names alter column key_name type text collate "en-x-icu"');
    expect(await list("ada", 0)).toEqual(["B", "a-b", "ab", "b"]);
    expect(await list("ada", 3)).toEqual(["ab", "b"]);
  });
});

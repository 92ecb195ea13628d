/** The label index: lists find keys by it, and the labels in the records decide. */
import { expect, it } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { systemPrincipal } from "../../../src/records/ownership.ts";
import { intact } from "../../../src/records/table-declaration.ts";
import { storeKey } from "../../../src/services/kms/create.ts";
import { createKmsStore } from "../../../src/services/kms/store.ts";
import type { Store } from "../../../src/store/store.ts";
import { describeStores, type Place } from "../../support/on-both.ts";
import { present } from "../answers.ts";
import { listPlan } from "./list-plan.ts";

const provider = await createCryptoProvider("openssl");
const { secretKey } = await provider.generateKeyPair("ML-DSA-44");

/** Adds a key with a distinctive alias. */
async function addKey(store: Store, alias: string, labels: Record<string, string>, name = ""): Promise<void> {
  const keys = createKmsStore(store);
  const added = { alias, algorithm: "ML-DSA-44", usage: "SIGN", name, labels } as const;
  const input = { ...added, rotationPeriodSeconds: undefined, secretKey, principal: systemPrincipal };
  await store.write((transaction) => storeKey({ keys, now: () => new Date() }, transaction, input));
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
  await addKey(store, "plain", { team: "payments", stage: "test" });
  await addKey(store, "named", { team: "payments" }, "release");
  await addKey(store, "odd", { team: odd });
  await addKey(store, "other", { team: "Payments" });
  return store;
}

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

  it("are searched in the index: no table is scanned completely", async () => {
    const place = await makePlace();
    if (place.location.kind === "postgres") return;
    const store = await fill(place);
    const plan = await listPlan(place, (reader) =>
      createKmsStore({ ...store, reader }).list(
        { limit: 100, after: 0 },
        { filter: { label: "team=payments" } },
      ),
    );
    expect(plan.filter((step) => /^SCAN (?!CONSTANT)/.test(step))).toEqual([]);
    expect(plan.join("\n")).toContain("kms_labels");
  });
});

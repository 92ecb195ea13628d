/**
 * Accounts and issuer keys that someone with write access to the store restores with valid tags: the identity
 * log records their end.
 */
import { describe, expect, it } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { createClientStore } from "../../src/identity/clients.ts";
import { createIssuerStore } from "../../src/identity/issuer-store.ts";
import { createRevocations } from "../../src/identity/revocations.ts";
import { createUserStore } from "../../src/identity/users.ts";
import type { Store } from "../../src/store/store.ts";
import { runCommand } from "../cli/operator/command-line.ts";
import { listPlan } from "../services/kms/list-plan.ts";
import { describeClient } from "../support/clients.ts";
import { makeSqlitePlace, type Place } from "../support/on-both.ts";

/** How to change and find an account. */
interface Accounts {
  add(): Promise<unknown>;
  change(): Promise<unknown>;
  remove(): Promise<unknown>;
  find(): Promise<unknown>;
  list(): Promise<readonly unknown[]>;
}

const kinds: Readonly<Record<string, { readonly table: string; open(store: Store): Accounts }>> = {
  user: {
    table: "users",
    open(store) {
      const users = createUserStore(store);
      return {
        add: () => users.add({ name: "ada", role: "user", passwordHash: "first" }, new Date()),
        change: () => users.setPassword("ada", "second"),
        remove: () => users.remove("ada"),
        find: () => users.find("ada"),
        list: () => users.list(),
      };
    },
  },
  client: {
    table: "oauth_clients",
    open(store) {
      const clients = createClientStore(store);
      return {
        add: () => clients.add(describeClient("ada"), new Date()),
        change: () => clients.setSecret("ada", "second"),
        remove: () => clients.remove("ada"),
        find: () => clients.find("ada"),
        list: () => clients.list(),
      };
    },
  },
};

type Row = Readonly<Record<string, unknown>>;

async function readRow({ query }: Place, table: string): Promise<Row> {
  const [row] = await query(`select * from ${table}`);
  if (row === undefined) throw new Error(`${table} is empty`);
  return row;
}

async function putBack({ query }: Place, table: string, row: Row): Promise<void> {
  await query(`delete from ${table}`);
  const columns = Object.keys(row);
  const places = columns.map((_, i) => `$${i + 1}`);
  await query(
    `insert into ${table} (${columns.join(", ")}) values (${places.join(", ")})`,
    Object.values(row) as Parameters<Place["query"]>[1],
  );
}

/** The first line of a store verify that finds faults. */
async function firstLineOf(place: Place): Promise<string | undefined> {
  const { code, stdout } = await runCommand(place, ["store", "verify"]);
  expect(code).toBe(1);
  return stdout.split("\n")[0];
}

describe("a restored account", () => {
  const changes: [what: string, change: (accounts: Accounts) => Promise<unknown>][] = [
    ["after it was removed", ({ remove }) => remove()],
    ["from before its secret changed", ({ change }) => change()],
    [
      "in place of a later account with its name",
      async ({ remove, add }) => {
        await remove();
        await add();
      },
    ],
  ];
  for (const [kind, { table, open }] of Object.entries(kinds))
    it.each(changes)(`is damaged, and named by qsp store verify: a ${kind}, %s`, async (_what, change) => {
      const place = await makeSqlitePlace();
      const store = await place.open();
      const accounts = open(store);
      await accounts.add();
      const row = await readRow(place, table);
      await change(accounts);
      await putBack(place, table, row);
      const record = `${kind} ada`;
      await expect(accounts.find()).rejects.toMatchObject({ record });
      await expect(accounts.list()).rejects.toMatchObject({ record });
      await store.close();
      expect(await firstLineOf(place)).toBe(
        `The record of ${kind} ada was restored, but a log records that it was removed or replaced.`,
      );
    });

  it.each(Object.entries(kinds))("stays valid if nothing was restored: a %s", async (_kind, { open }) => {
    const place = await makeSqlitePlace();
    const accounts = open(await place.open());
    for (const step of [accounts.add, accounts.change, accounts.remove, accounts.add, accounts.change]) {
      await step();
      expect(await accounts.list()).toHaveLength(step === accounts.remove ? 0 : 1);
    }
    // Accounts may predate the identity log.
    await place.query("delete from identity_entries");
    expect(await accounts.find()).toMatchObject({ name: "ada" });
  });
});

describe("an account whose row was removed", () => {
  it.each(Object.entries(kinds))("is named by qsp store verify: a %s", async (kind, { table, open }) => {
    const place = await makeSqlitePlace();
    const store = await place.open();
    const accounts = open(store);
    for (const step of [accounts.add, accounts.remove, accounts.add]) await step();
    expect((await runCommand(place, ["store", "verify"])).code).toBe(0);
    await place.query(`delete from ${table}`);
    await store.close();
    const missing = `The ${kind} ada is missing, but the identity log records no removal.`;
    expect(await firstLineOf(place)).toBe(missing);
  });
});

describe("a retired issuer key that was restored", () => {
  it("is not accepted, and does not invalidate later keys", async () => {
    const place = await makeSqlitePlace();
    const store = await place.open();
    const provider = await createCryptoProvider("openssl");
    const keys = createIssuerStore(store);
    const { publicKey } = await provider.generateKeyPair("ML-DSA-65");
    const [first, second] = ["first", "second"].map((keyId) => ({
      keyId,
      publicKey,
      seed: new Uint8Array(32),
    }));
    if (first === undefined || second === undefined) throw new Error("expected two keys");
    const now = new Date();
    await keys.addFirstKey(first, now);
    const row = await readRow(place, "issuer_keys");
    await keys.replaceKey(second, now, now);
    const listed = async () => (await keys.listKeys(now)).map(({ keyId }) => keyId).sort();
    expect(await listed()).toEqual(["first", "second"]);
    await place.query("update issuer_keys set retired_at_ms = null, record_tag = $1 where key_id = 'first'", [
      String(row.record_tag),
    ]);
    expect(await listed()).toEqual(["second"]);
    await provider.close();
  });
});

describe("the identity log", () => {
  it("is searched by index, however many log-ins it has", async () => {
    const place = await makeSqlitePlace();
    const store = await place.open();
    const steps = await listPlan(place, async (reader) => {
      const read = { ...store, reader };
      await createUserStore(read).find("ada");
      await createClientStore(read).find("shop");
      await createIssuerStore(read).listKeys(new Date());
      await createRevocations(read).includesAny(["token-1"]);
    });
    const searches = steps.filter((step) => step.includes("identity_entries"));
    expect(searches).toEqual([
      ...Array(3).fill(expect.stringMatching(/^SEARCH .* INDEX identity_entries_of_changes /)),
      expect.stringMatching(/^SEARCH .* INDEX identity_entries_of_revocations /),
    ]);
  });
});

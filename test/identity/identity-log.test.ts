/**
 * The identity log: its content, how much untrusted callers can add to it, and that tampering is detected.
 */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { createClientStore } from "../../src/identity/clients.ts";
import { openIssuer, rotateIssuerKey } from "../../src/identity/issuer.ts";
import { createIssuerStore } from "../../src/identity/issuer-store.ts";
import { createLogInRecords } from "../../src/identity/log-in-records.ts";
import { createRevocations } from "../../src/identity/revocations.ts";
import { createUserStore } from "../../src/identity/users.ts";
import type { Store } from "../../src/store/store.ts";
import { runCommand } from "../cli/operator/command-line.ts";
import { listPlan } from "../services/kms/list-plan.ts";
import { describeClient } from "../support/clients.ts";
import { writeEntries } from "../support/entries.ts";
import { makeSqlitePlace, type Place } from "../support/on-both.ts";

const origin = { clientAddress: "192.0.2.7", requestId: "call-1" };
const from = { ...origin, name: "ada" };

/** Entries as stored in the database: operation, subject, actor, outcome and details. */
async function readLog({ query }: Place): Promise<string[]> {
  const rows = await query("select * from identity_entries order by sequence");
  const columns = ["operation", "key_id", "user_name", "outcome", "details", "client_address", "request_id"];
  return rows.map((row) => columns.map((column) => row[column]).join("|"));
}

/** A logger, and the lines that it got. */
function noteLines() {
  const lines: unknown[] = [];
  const note = (line: unknown) => void lines.push(line);
  return { lines, logger: { info: note, warn: note } as never };
}

async function addAda(place: Place) {
  const store = await place.open();
  await createUserStore(store).add({ name: "ada", role: "admin", passwordHash: "scrypt$1" }, new Date());
  return store;
}

describe("the identity log", () => {
  it("records what operators do with users and clients, without hashes of passwords or secrets", async () => {
    const place = await makeSqlitePlace();
    const store = await addAda(place);
    const [users, clients] = [createUserStore(store), createClientStore(store)];
    await users.setPassword("ada", "scrypt$2");
    await users.remove("ada");
    await users.remove("ada");
    await clients.add(describeClient("shop", { scopes: ["kms.sign"] }), new Date());
    await clients.setSecret("shop", "sha256$x");
    await clients.remove("shop");
    const log = (await readLog(place)).map((entry) =>
      entry.replace(/generation=[0-9a-f-]{36}/, "generation=…"),
    );
    expect(log).toEqual([
      "CREATE_USER|ada|operator|OK|role=admin, generation=…||",
      "SET_PASSWORD|ada|operator|OK|generation=…||",
      "REMOVE_USER|ada|operator|OK|||",
      "CREATE_CLIENT|shop|operator|OK|role=user, scopes=kms.sign, generation=…||",
      "SET_CLIENT_SECRET|shop|operator|OK|generation=…||",
      "REMOVE_CLIENT|shop|operator|OK|||",
    ]);
    expect(await store.verifyIdentityLog()).toMatchObject({ valid: true, entries: 6 });
  });

  it("records token-signing keys from creation to retirement", async () => {
    const place = await makeSqlitePlace();
    const store = await place.open();
    const provider = await createCryptoProvider("openssl");
    const deps = { provider, store: createIssuerStore(store), now: () => new Date() };
    (await openIssuer(deps, { issuerUrl: undefined, algorithm: "ML-DSA-65" })).close();
    await rotateIssuerKey(deps, { revoke: true });
    const entries = (await readLog(place)).map((line) => line.split("|"));
    expect(entries.map(([operation, , who]) => `${operation} by ${who}`)).toEqual([
      "CREATE_ISSUER_KEY by system",
      "RETIRE_ISSUER_KEY by operator",
      "CREATE_ISSUER_KEY by operator",
    ]);
    // The key that was created is the one that is retired.
    expect(entries[0]?.[1]).toBe(entries[1]?.[1]);
    await provider.close();
  });

  it("records a revocation once, with the client and its call", async () => {
    const place = await makeSqlitePlace();
    const revocations = createRevocations(await place.open());
    const input = { tokenId: "token-1", client: "shop", origin };
    await revocations.add(input);
    await revocations.add(input);
    expect(await revocations.includesAny(["token-0", "token-1"])).toBe(true);
    expect(await revocations.includesAny(["token-0"])).toBe(false);
    expect(await readLog(place)).toEqual(["REVOKE_TOKEN|shop|shop|OK|token=token-1|192.0.2.7|call-1"]);
  });

  it.each([
    ["a name", ["LOG_IN"]],
    ["a client, in any operation,", ["ISSUE_TOKEN", "INTROSPECT_TOKEN", "REVOKE_TOKEN"]],
  ] as const)(
    "records at most ten failures of %s per minute one by one, and counts the others",
    async (_what, operations) => {
      const place = await makeSqlitePlace();
      const { lines, logger } = noteLines();
      const records = createLogInRecords(await place.open(), { logger });
      for (let i = 0; i < 3000; i += 1)
        for (const operation of operations)
          records.failed(operation, { ...from, reason: "LOGIN_FAILED", isKnown: true });
      for (let i = 0; i < 5; i += 1)
        records.failed("LOG_IN", { ...from, reason: "LOGIN_LIMITED", isKnown: false });
      await records.close();
      const log = await readLog(place);
      const unrecorded = 3000 * operations.length - 10;
      expect(log).toContain(`LOG_INS||system|REFUSED|LOGIN_FAILED=${unrecorded}, LOGIN_LIMITED=5||`);
      expect([log.length, lines.length]).toEqual([11, 11]);
    },
  );

  it("records at most 100 failures of a name per hour one by one, and 500 of all users", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const place = await makeSqlitePlace();
    const records = createLogInRecords(await place.open(), {});
    const fail = (name: string) =>
      records.failed("LOG_IN", { ...from, name, reason: "LOGIN_FAILED", isKnown: true });
    for (let minute = 0; minute < 120; minute += 1) {
      for (let i = 0; i < 20; i += 1) for (const name of ["ada", "bob", `user ${i}`]) fail(name);
      vi.advanceTimersByTime(60_000);
    }
    await records.close();
    const entries = (await readLog(place)).filter((line) => line.startsWith("LOG_IN|"));
    expect(entries.filter((line) => line.startsWith("LOG_IN|ada|"))).toHaveLength(2 * 100);
    expect(entries).toHaveLength(2 * 500);
  });

  it("does not hide a user's failures behind failures of clients, other users and unknown names", async () => {
    const place = await makeSqlitePlace();
    const records = createLogInRecords(await place.open(), {});
    const fail = (operation: "LOG_IN" | "ISSUE_TOKEN", name: string, isKnown: boolean) =>
      records.failed(operation, { ...from, name, reason: "LOGIN_FAILED", isKnown });
    for (let i = 0; i < 100; i += 1) {
      fail("ISSUE_TOKEN", "shop", true);
      fail("ISSUE_TOKEN", `nobody ${i}`, false);
      fail("LOG_IN", `nobody ${i}`, false);
      fail("LOG_IN", "ada", true);
    }
    fail("LOG_IN", "bob", true);
    await records.close();
    expect((await readLog(place)).filter((line) => line.startsWith("LOG_IN|bob|"))).toHaveLength(1);
  });

  it("counts as broken if it is emptied, even if no running program has seen it", async () => {
    const place = await makeSqlitePlace();
    const store = await addAda(place);
    await store.close();
    for (const table of ["identity_entries", "identity_head", "identity_checkpoints"])
      await place.query(`delete from ${table}`);
    expect(await (await place.open()).verifyIdentityLog()).toMatchObject({
      valid: false,
      firstBrokenSequence: 1,
    });
  });

  it("contains no attacker-controlled names: failures of unknown names are only counted", async () => {
    const place = await makeSqlitePlace();
    const { lines, logger } = noteLines();
    const records = createLogInRecords(await place.open(), { logger });
    for (const name of ["hunter2 typed into the wrong field", "x".repeat(10_000)])
      records.failed("LOG_IN", { ...from, name, reason: "LOGIN_FAILED", isKnown: false });
    await records.close();
    expect(await readLog(place)).toEqual(["LOG_INS||system|REFUSED|LOGIN_FAILED_UNKNOWN_NAME=2||"]);
    expect(lines).toHaveLength(3);
    expect(JSON.stringify(lines)).not.toMatch(/hunter2|xxx/);
  });

  it.each([
    ["an entry is changed", "update identity_entries set details = 'role=user' where sequence = 1", 1],
    ["an entry is removed", "delete from identity_entries where sequence = 2", 2],
    ["the end is cut off", "delete from identity_entries where sequence = 3", 3],
    ["an address is changed", "update identity_entries set client_address = '' where sequence = 3", 3],
  ])("counts as broken if %s", async (_what, statement, broken) => {
    const place = await makeSqlitePlace();
    const store = await addAda(place);
    await createUserStore(store).setPassword("ada", "scrypt$2");
    const records = createLogInRecords(store, {});
    await records.succeeded("LOG_IN", from);
    await records.close();
    expect(await store.verifyIdentityLog()).toMatchObject({ valid: true, entries: 3 });
    expect(await store.verifyAudit()).toMatchObject({ valid: true, entries: 0 });
    expect((await readLog(place))[2]).toBe("LOG_IN|ada|ada|OK||192.0.2.7|call-1");
    await place.query(statement);
    expect(await store.verifyIdentityLog()).toMatchObject({ valid: false, firstBrokenSequence: broken });
  });

  it("rejects entries, ends and checkpoints of the key log, whose first hash is computed the same way", async () => {
    const place = await makeSqlitePlace();
    const store = await place.open();
    await writeEntries(store, 3);
    await store.verifyAudit();
    await store.close();
    for (const [to, log] of [
      ["identity_entries", "audit_entries"],
      ["identity_head", "audit_head"],
      ["identity_checkpoints", "audit_checkpoints"],
    ]) {
      await place.query(`delete from ${to}`);
      await place.query(`insert into ${to} select * from ${log}`);
    }
    const again = await place.open({ mode: "existing" });
    expect(await again.verifyIdentityLog()).toMatchObject({ valid: false });
  });

  it("does not prevent entries in the key log if its end was changed", async () => {
    const place = await makeSqlitePlace();
    const store = await addAda(place);
    await place.query("update identity_head set head_tag = 'other'");
    const writing = writeEntries(store, 1);
    createLogInRecords(store, {}).failed("LOG_IN", { ...from, reason: "LOGIN_FAILED", isKnown: true });
    await writing;
  });
});

it("log-in lines contain the name if it exists, the address and the reason", async () => {
  const { lines, logger } = noteLines();
  const records = createLogInRecords(
    { write: async (work) => work({ auditIdentity: async () => {} } as never) },
    { logger },
  );
  await records.succeeded("LOG_IN", from);
  records.failed("LOG_IN", { ...from, reason: "LOGIN_FAILED", isKnown: true });
  records.failed("LOG_IN", { ...from, name: "a password", reason: "LOGIN_FAILED", isKnown: false });
  expect(lines).toEqual([
    { operation: "LOG_IN", user: "ada", ...origin },
    { operation: "LOG_IN", user: "ada", reason: "LOGIN_FAILED", ...origin },
    { operation: "LOG_IN", reason: "LOGIN_FAILED", ...origin },
  ]);
  await records.close();
});

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

it.each(Object.entries(kinds))(
  "an account whose row was removed is named by qsp store verify: a %s",
  async (kind, { table, open }) => {
    const place = await makeSqlitePlace();
    const store = await place.open();
    const accounts = open(store);
    for (const step of [accounts.add, accounts.remove, accounts.add]) await step();
    expect((await runCommand(place, ["store", "verify"])).code).toBe(0);
    await place.query(`delete from ${table}`);
    await store.close();
    const missing = `The ${kind} ada is missing, but the identity log records no removal.`;
    expect(await firstLineOf(place)).toBe(missing);
  },
);

it("a retired issuer key that was restored is not accepted, and does not invalidate later keys", async () => {
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

it("the identity log is searched by index, however many log-ins it has", async () => {
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

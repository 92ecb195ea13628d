import { setInterval } from "node:timers/promises";
import { expect, it } from "vitest";
import type { NewAuditEntry } from "../../src/audit/chain.ts";
import { refusalBudget, refusalWindowMs } from "../../src/audit/refusal-budget.ts";
import { unobserved } from "../../src/database/background.ts";
import { RecordDamagedError, StoreFailureError } from "../../src/database/store-error.ts";
import {
  type AnswerCodec,
  IdempotencyConflictError,
  type IdempotentCall,
} from "../../src/records/idempotency.ts";
import { noLimits } from "../../src/records/quota.ts";
import { createRefusals } from "../../src/store/refusals.ts";
import type { Store } from "../../src/store/store.ts";
import type { WriteTransaction } from "../../src/store/write-transaction.ts";
import { addRow, readRowNames } from "../support/entries.ts";
import { describeStores, openNew, type Place } from "../support/on-both.ts";
import { readAllRows } from "../support/tables.ts";

const hourMs = 3600 * 1000;

describeStores("writes", (makePlace) => {
  it("share a few transactions if concurrent, and survive reopening", async () => {
    const place = await makePlace();
    const commits: { durationMs: number; calls: number }[] = [];
    const onCommit = (durationMs: number, calls: number) => void commits.push({ durationMs, calls });
    const store = await place.open({ onCommit });
    const names = Array.from({ length: 100 }, (_, i) => `list-${i}`);
    await Promise.all(names.map((name) => store.write(adding(name))));
    await store.close();
    // The store itself adds signed checkpoints.
    expect(commits.reduce((sum, { calls }) => sum + calls, 0)).toBeGreaterThanOrEqual(100);
    for (const { durationMs } of commits) expect(durationMs).toBeGreaterThan(0);
    // A slow machine needs more: each transaction accepts writes for 100 ms.
    expect(commits.length).toBeLessThanOrEqual(50);
    expect(await listNames(await place.open())).toEqual(names.toSorted());
  });

  it("of a caller come before another caller's backlog", async () => {
    const place = await makePlace();
    let caller = "mallory";
    const store = await place.open({ callerOf: () => caller });
    const backlog = Array.from({ length: 600 }, (_, i) => store.write(adding(`row ${i}`)));
    caller = "victim";
    await store.write(adding("victim"));
    await Promise.all(backlog);
    const entries = await place.query("select sequence from audit_entries where details = 'victim'");
    expect(entries).toEqual([{ sequence: 2 }]);
  });

  it("that violate a unique key fail alone, with a statement error and without an audit entry", async () => {
    const { place, store } = await openNew(makePlace);
    const calls = ["a", "b", "a", "c"].map((name) => store.write(adding(name)));
    const outcomes = await Promise.allSettled(calls);
    const isFulfilled = { status: "fulfilled" };
    expect(outcomes).toMatchObject([isFulfilled, isFulfilled, { status: "rejected" }, isFulfilled]);
    await expect(calls[2]).rejects.not.toBeInstanceOf(StoreFailureError);
    expect(await listNames(store)).toEqual(["a", "b", "c"]);
    const details = await place.query("select details from audit_entries order by details");
    expect(details).toEqual([{ details: "a" }, { details: "b" }, { details: "c" }]);
    expect(await store.verifyAudit()).toMatchObject({ valid: true, entries: 3 });
  });

  it("that fail leave nothing: no row, no secret, no audit entry, no answer", async () => {
    const { place, store } = await openNew(makePlace);
    const before = await readAllRows(place);
    const failing = store.runIdempotent(callOf(), textCodec, (write) =>
      write(async (transaction) => {
        await adding("a")(transaction);
        await transaction.putSecret("things/1/seed", Buffer.from("secret"));
        transaction.audit({ keyId: "1", operation: "CREATE", user: "ada", outcome: "OK", details: "" });
        throw new Error("changed my mind");
      }),
    );
    await expect(failing).rejects.toThrow("changed my mind");
    expect(await readAllRows(place)).toEqual(before);
  });

  it("wait their turn while another program writes, without delaying timers or reads", async () => {
    const place = await makePlace();
    const [store, other] = [await place.open(), await place.open()];
    const [begun, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const holding = other.write(async (transaction) => {
      await adding("first")(transaction);
      begun.resolve();
      await release.promise;
    });
    await begun.promise;
    let isWritten = false;
    const writing = store.write(adding("second")).finally(() => {
      isWritten = true;
    });
    let turns = 0;
    for await (const _turn of setInterval(5)) if (++turns === 20) break;
    expect(await listNames(store)).toEqual([]);
    expect(isWritten).toBe(false);
    release.resolve();
    await Promise.all([holding, writing]);
    for (const program of [store, other]) expect(await listNames(program)).toEqual(["first", "second"]);
  });

  it("submitted before closing the store are on disk when closing returns, and later ones fail", async () => {
    const { place, store } = await openNew(makePlace);
    const calls = ["a", "b"].map((name) => store.write(adding(name)));
    await store.close();
    expect(await readRowNames(place)).toEqual(["a", "b"]);
    await Promise.all(calls);
    const unavailable = { constructor: StoreFailureError, code: "UNAVAILABLE" };
    await expect(store.write(adding("c"))).rejects.toMatchObject(unavailable);
  });

  it("call listeners once they are on disk, until a listener unsubscribes", async () => {
    const { place, store } = await openNew(makePlace);
    const heard: Promise<string[]>[] = [];
    const stop = store.onWrite(() => heard.push(readRowNames(place)));
    await store.write(adding("a"));
    stop();
    await store.write(adding("b"));
    expect(await Promise.all(heard)).toEqual([expect.arrayContaining(["a"])]);
  });
});

describeStores("runIdempotent", (makePlace) => {
  it("returns the first answer for the same request and key, even after reopening, and to another program", async () => {
    const { place, store } = await openNew(makePlace);
    expect(await ask(store, callOf(), "first")).toBe("first");
    expect(await ask(await place.open(), callOf(), "second")).toBe("first");
    await store.close();
    expect(await ask(await place.open(), callOf(), "third")).toBe("first");
    expect(await readRowNames(place)).toEqual(["first"]);
  });

  it("rejects a different request with the same key, even concurrently, without executing it", async () => {
    const store = await (await makePlace()).open();
    const calls = ["aa", "bb"].map((requestHash) => ask(store, callOf({ requestHash }), requestHash));
    const outcomes = await Promise.allSettled(calls);
    const answers = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    const refusals = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
    expect(refusals).toEqual([new IdempotencyConflictError("key-1")]);
    expect(await listNames(store)).toEqual(answers);
    await expect(ask(store, callOf({ requestHash: "cc" }), "cc")).rejects.toThrow(IdempotencyConflictError);
    expect(await listNames(store)).toEqual(answers);
  });

  it.each([
    ["another user", callOf({ userId: "grace" })],
    ["another key", callOf({ idempotencyKey: "key-2" })],
    ["a call without a key", undefined],
  ])("treats %s separately", async (_who, other) => {
    const store = await (await makePlace()).open();
    await ask(store, callOf(), "first");
    expect(await ask(store, other, "second")).toBe("second");
    expect(await ask(store, callOf(), "third")).toBe("first");
  });

  it("executes 20 concurrent calls from two programs once", async () => {
    const place = await makePlace();
    const stores = [await place.open(), await place.open()] as const;
    const answers = await Promise.all(
      numbered(20).map((n) => ask(n % 2 === 0 ? stores[0] : stores[1], callOf(), `answer-${n}`)),
    );
    expect(new Set(answers).size).toBe(1);
    expect(await readRowNames(place)).toEqual([answers[0]]);
  });

  it("executes again after a failure, unless the first call has succeeded meanwhile", async () => {
    const store = await (await makePlace()).open();
    const fail = (work: () => Promise<unknown>) =>
      store.runIdempotent(callOf(), textCodec, async () => {
        await work();
        throw new Error("not now");
      });
    await expect(fail(async () => {})).rejects.toThrow("not now");
    expect(await fail(() => ask(store, callOf(), "first"))).toBe("first");
  });

  it("keeps an answer for 24 hours, and executes again afterwards", async () => {
    const clock = { ms: Date.UTC(2026, 0, 1) };
    const store = await (await makePlace()).open({ now: () => new Date(clock.ms) });
    await ask(store, callOf(), "first");
    clock.ms += 24 * hourMs - 1;
    expect(await ask(store, callOf(), "second")).toBe("first");
    clock.ms += 1;
    expect(await ask(store, callOf({ requestHash: "bb" }), "third")).toBe("third");
    expect(await ask(store, callOf({ requestHash: "bb" }), "fourth")).toBe("third");
  });

  it("stores no answer whose encoding is undefined, and none in the clear", async () => {
    const { place, store } = await openNew(makePlace);
    const forgetful: AnswerCodec<string> = { ...textCodec, encode: () => undefined };
    expect(await ask(store, callOf(), "first", forgetful)).toBe("first");
    expect(await place.query("select * from idempotent_answers")).toEqual([]);
    expect(await ask(store, callOf(), "shown only once")).toBe("shown only once");
    const [kept] = await place.query("select sealed_answer from idempotent_answers");
    expect(Buffer.from(kept?.sealed_answer as Uint8Array).includes("shown only once")).toBe(false);
  });

  it.each(["user_id = 'grace'", "request_hash = 'bb'", "sealed_answer = $1"])(
    "reports a changed answer as damaged: %s",
    async (change) => {
      const { place, store } = await openNew(makePlace);
      await ask(store, callOf(), "first");
      expect(await store.verifyAnswers()).toEqual({ checked: 1, damaged: [] });
      const values = change.includes("$1") ? [new Uint8Array(60)] : [];
      await place.query(`update idempotent_answers set ${change}`, values);
      const userId = change.includes("grace") ? "grace" : "ada";
      const record = `answer to idempotency key key-1 of user ${userId}`;
      for (const requestHash of ["aa", "bb"])
        await expect(ask(store, callOf({ userId, requestHash }), "second")).rejects.toMatchObject({
          constructor: RecordDamagedError,
          record,
        });
      expect(await store.verifyAnswers()).toEqual({ checked: 1, damaged: [record] });
    },
  );

  it("verifies all answers in a store", async () => {
    const { place, store } = await openNew(makePlace);
    const count = 130;
    for (let i = 0; i < count; i += 1)
      await ask(store, callOf({ userId: `user-${i % 3}`, idempotencyKey: `key-${i}` }), `row ${i}`);
    await place.query("update idempotent_answers set request_hash = 'bb' where idempotency_key = 'key-129'");
    expect(await store.verifyAnswers()).toEqual({
      checked: count,
      damaged: ["answer to idempotency key key-129 of user user-0"],
    });
  });
});

describeStores("the idempotency key quota", (makePlace) => {
  it("counts each user's keys over 24 hours", async () => {
    const clock = { ms: Date.UTC(2026, 0, 1) };
    const quotas = { ...noLimits, idempotencyKeys: 2 };
    const store = await (await makePlace()).open({ now: () => new Date(clock.ms), quotas });
    await askFor(store, "1");
    clock.ms += hourMs;
    await askFor(store, "2");
    await expect(askFor(store, "3")).rejects.toMatchObject({ limit: 2 });
    expect(await askFor(store, "3", "bob")).toBe("3");
    expect(await askFor(store, "2")).toBe("2");
    clock.ms += 23 * hourMs;
    await askFor(store, "3");
    await expect(askFor(store, "4")).rejects.toMatchObject({ limit: 2 });
  });

  it("stays correct when a key is reused after a day, and when many expire at once", async () => {
    const clock = { ms: Date.UTC(2026, 0, 1) };
    const place = await makePlace();
    const store = await place.open({ now: () => new Date(clock.ms) });
    const keys = Array.from({ length: 300 }, (_, i) => `key ${i}`);
    await Promise.all(keys.map((key) => askFor(store, key)));
    const count = async () => {
      const [kept] = await place.query("select count(*) as rows from idempotent_answers");
      const counted = await place.query(
        "select row_count from list_counts where list_name = 'idempotent_answers by=ada'",
      );
      return [Number(kept?.rows), counted[0]?.row_count];
    };
    expect(await count()).toEqual([300, 300]);
    clock.ms += 24 * hourMs;
    await askFor(store, "key 299");
    const [kept, counted] = await count();
    expect(kept).toBeLessThanOrEqual(101);
    expect(counted).toBe(kept);
    await askFor(store, "another");
    expect(await count()).toEqual([2, 2]);
  });
});

const textCodec: AnswerCodec<string> = {
  encode: (answer) => Buffer.from(answer),
  decode: (bytes) => Buffer.from(bytes).toString(),
};

function callOf(change: Partial<IdempotentCall> = {}): IdempotentCall {
  return { userId: "ada", idempotencyKey: "key-1", requestHash: "aa", ...change };
}

/** Does something once; its effect is a row with this name, and so is its answer. */
function ask(
  store: Store,
  call: IdempotentCall | undefined,
  name: string,
  codec = textCodec,
): Promise<string> {
  return store.runIdempotent(call, codec, (write) =>
    write(async (transaction) => {
      await adding(name)(transaction);
      return name;
    }),
  );
}

/** Does something without an effect, with its own idempotency key. */
function askFor(store: Store, idempotencyKey: string, userId = "ada"): Promise<string> {
  return store.runIdempotent(callOf({ userId, idempotencyKey }), textCodec, (write) =>
    write(async () => idempotencyKey),
  );
}

/** Work that adds a row, with an audit entry; names are unique. */
function adding(name: string) {
  return (transaction: WriteTransaction): Promise<void> => addRow(transaction, name);
}

async function listNames({ reader }: Store): Promise<string[]> {
  // Idempotency keys are counted too.
  const rows = await reader
    .selectFrom("list_counts")
    .select("list_name")
    .where("list_name", "not like", "idempotent_answers %")
    .execute();
  return rows.map(({ list_name }) => list_name).sort();
}

function numbered(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

const full = new StoreFailureError("FULL", new Error("full"));

function refused(n: number | string, more: Partial<NewAuditEntry> = {}): NewAuditEntry {
  const what = { operation: "SIGN", outcome: "REFUSED", details: "reason=KEY_NOT_FOUND" } as const;
  return { keyId: `key-${n}`, user: "ada", clientAddress: "192.0.2.1", requestId: "call", ...what, ...more };
}

async function readLog({ query }: Place): Promise<string[]> {
  const rows = await query("select * from audit_entries order by sequence");
  return rows.map(({ key_id, operation, user_name, details }) =>
    [key_id, operation, user_name, details].join("|"),
  );
}

/** Records refusals with a manual clock. */
function recordBy(store: Pick<Store, "batch">) {
  const clock = { ms: 1_800_000_000_000 };
  const refusals = createRefusals({
    batch: store.batch,
    now: () => new Date(clock.ms),
    background: unobserved,
  });
  return { clock, ...refusals };
}

describeStores("a store's refusals", (makePlace) => {
  it("fail with the call if the first entry cannot be written, each time", async () => {
    const { record } = recordBy({ batch: () => () => Promise.reject(full) });
    for (let i = 0; i < 3; i += 1) await expect(record(refused(1))).rejects.toThrow(full);
  });

  it("are added to the next sum if their counts cannot be written", async () => {
    const { place, store } = await openNew(makePlace);
    let isFull = false;
    const batch: Store["batch"] = (work) => {
      const submit = store.batch(work);
      return (input) => (isFull ? Promise.reject(full) : submit(input));
    };
    const { clock, record, writeDue } = recordBy({ batch });
    for (let i = 0; i < 5; i += 1) await record(refused(1));
    isFull = true;
    clock.ms += refusalWindowMs;
    await writeDue();
    isFull = false;
    clock.ms += hourMs;
    await writeDue();
    expect((await readLog(place)).slice(1)).toEqual(["|REFUSALS|ada|unrecorded=4"]);
  });
});

/** The longest texts of a refusal: a handle of 100 characters, a name, an address and the call's ID. */
const longest = (n: number): Partial<NewAuditEntry> => ({
  keyId: `${n}`.padEnd(100, "€"),
  user: "a".repeat(255),
  clientAddress: "2001:0db8:0000:0000:0000:0000:0000:0001",
  requestId: "r".repeat(128),
  owner: `user-${"0".repeat(36)}`,
  keyName: "n".repeat(255),
});

/** Size in bytes of the database: its file, or the entries table with its indexes. */
async function readBytes({ location, query }: Place): Promise<number> {
  const [row] = await query(
    location.kind === "sqlite"
      ? "select page_count * page_size as bytes from pragma_page_count, pragma_page_size"
      : "select pg_total_relation_size('audit_entries') as bytes",
  );
  return Number(row?.bytes);
}

describeStores("a database", (makePlace) => {
  it("grows by less than 1 MiB an hour for one user's refusals, even if they are of maximum length", async () => {
    const { place, store } = await openNew(makePlace);
    await store.recordRefusal(refused("first", { user: "bob" }));
    const before = await readBytes(place);
    await Promise.all(Array.from({ length: 5000 }, (_, n) => store.recordRefusal(refused(n, longest(n)))));
    const grown = (await readBytes(place)) - before;
    expect(grown).toBeGreaterThan(refusalBudget.bytes / 8);
    expect(grown).toBeLessThan(refusalBudget.bytes);
  });
});

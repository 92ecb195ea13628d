/** Audit log entries for refusals, within each user's budget. */
import { expect, it } from "vitest";
import type { NewAuditEntry } from "../../src/audit/chain.ts";
import { refusalBudget, refusalWindowMs } from "../../src/audit/refusal-budget.ts";
import { unobserved } from "../../src/database/background.ts";
import { StoreFailureError } from "../../src/database/store-error.ts";
import { createRefusals } from "../../src/store/refusals.ts";
import type { Store } from "../../src/store/store.ts";
import { writeEntries } from "../support/entries.ts";
import { describeStores, type Place } from "../support/on-both.ts";

const hourMs = 3_600_000;
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
  it("are audit log entries: the first at once, repetitions when their window ends", async () => {
    const place = await makePlace();
    const store = await place.open();
    const { clock, record, writeDue } = recordBy(store);
    for (let i = 0; i < 38; i += 1) await record(refused(1));
    await record(refused(2));
    expect(await readLog(place)).toEqual([
      "key-1|SIGN|ada|reason=KEY_NOT_FOUND",
      "key-2|SIGN|ada|reason=KEY_NOT_FOUND",
    ]);
    clock.ms += refusalWindowMs;
    await writeDue();
    expect((await readLog(place)).slice(2)).toEqual(["key-1|SIGN|ada|reason=KEY_NOT_FOUND, repeated=37"]);
    expect(await store.verifyAudit()).toMatchObject({ valid: true, entries: 3 });
  });

  it("are limited to 1,000 entries per user, unlike successful calls; the counts are written on close", async () => {
    const place = await makePlace();
    let unrecorded = 0;
    const store = await place.open({ onRefusalUnrecorded: () => (unrecorded += 1) });
    for (let i = 0; i < 5; i += 1) await store.recordRefusal(refused(1));
    await Promise.all(
      Array.from({ length: 1200 }, (_, n) => store.recordRefusal(refused(n, { user: "bob" }))),
    );
    await writeEntries(store, 1500, "bob");
    expect(await readLog(place)).toHaveLength(1 + refusalBudget.entries + 1500);
    expect(unrecorded).toBe(200);
    await store.close();
    const log = await readLog(place);
    expect(log.slice(1 + refusalBudget.entries + 1500).sort()).toEqual([
      "key-1|SIGN|ada|reason=KEY_NOT_FOUND, repeated=4",
      "|REFUSALS|bob|unrecorded=200",
    ]);
    expect(await (await place.open()).verifyAudit()).toMatchObject({ valid: true, entries: log.length });
  });

  it("fail with the call if the first entry cannot be written, each time", async () => {
    const { record } = recordBy({ batch: () => () => Promise.reject(full) });
    for (let i = 0; i < 3; i += 1) await expect(record(refused(1))).rejects.toThrow(full);
  });

  it("are added to the next sum if their counts cannot be written", async () => {
    const place = await makePlace();
    const store = await place.open();
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
    const place = await makePlace();
    const store = await place.open();
    await store.recordRefusal(refused("first", { user: "bob" }));
    const before = await readBytes(place);
    await Promise.all(Array.from({ length: 5000 }, (_, n) => store.recordRefusal(refused(n, longest(n)))));
    const grown = (await readBytes(place)) - before;
    expect(grown).toBeGreaterThan(refusalBudget.bytes / 8);
    expect(grown).toBeLessThan(refusalBudget.bytes);
  });
});

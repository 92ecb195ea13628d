/** Which refusals become audit log entries, with a manual clock. */

import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it, onTestFinished } from "vitest";
import type { NewAuditEntry } from "../../src/audit/chain.ts";
import { createCheckpointSchedule } from "../../src/audit/checkpoint-schedule.ts";
import { RefusalBudget, refusalBudget, refusalWindowMs } from "../../src/audit/refusal-budget.ts";
import { keyLog } from "../../src/audit/tables.ts";
import { unobserved } from "../../src/database/background.ts";

const hourMs = 3_600_000;

/** A refusal; `n` distinguishes it from others. */
function refused(n: number | string = 1, more: Partial<NewAuditEntry> = {}): NewAuditEntry {
  const what = { operation: "SIGN", outcome: "REFUSED", details: "reason=KEY_NOT_FOUND" } as const;
  const origin = { clientAddress: "192.0.2.1", requestId: `call-${n}` };
  return { keyId: `key-${n}`, user: "ada", ...origin, ...what, ...more };
}

/**
 * Takes `count` different refusals.
 *
 * @returns their fates, each with its number
 */
function takeMany(budget: RefusalBudget, count: number, nowMs = 0, more: Partial<NewAuditEntry> = {}) {
  const fates: Record<string, number> = {};
  for (let n = 0; n < count; n += 1) {
    const fate = budget.take(refused(n, more), nowMs);
    fates[fate] = (fates[fate] ?? 0) + 1;
  }
  return fates;
}

const detailsOf = (due: ReturnType<RefusalBudget["takeDue"]>) => due.map(({ entry }) => entry.details);

describe("equal refusals", () => {
  it("become one entry at once, and one with their count when the window ends", () => {
    const budget = new RefusalBudget();
    const fates = Array.from({ length: 38 }, (_, i) =>
      budget.take(refused(1, { requestId: `call-${i}` }), i),
    );
    expect(fates).toEqual(["write", ...Array(37).fill("repeated")]);
    expect(budget.takeDue(refusalWindowMs - 1)).toEqual([]);
    expect(budget.takeDue(refusalWindowMs)).toEqual([
      { entry: refused(1, { details: "reason=KEY_NOT_FOUND, repeated=37", requestId: "" }), count: 37 },
    ]);
  });

  it.each<[string, Partial<NewAuditEntry>]>([
    ["a different user", { user: "bob" }],
    ["a different operation", { operation: "VERIFY" }],
    ["a different key", { keyId: "key-2" }],
    ["a different reason", { details: "reason=GRANT_MISSING" }],
    ["a key with a different owner", { owner: "bob" }],
  ])("are counted separately for %s", (_what, more) => {
    const budget = new RefusalBudget();
    expect([budget.take(refused(), 0), budget.take(refused(1, more), 0)]).toEqual(["write", "write"]);
  });

  it("keep their address if all came from the same one, and have none otherwise", () => {
    const budget = new RefusalBudget();
    for (const clientAddress of ["192.0.2.1", "192.0.2.2", "192.0.2.2"])
      budget.take(refused(1, { clientAddress }), 0);
    for (const clientAddress of ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.2"])
      budget.take(refused(2, { clientAddress }), 0);
    const due = budget.takeDue(refusalWindowMs);
    expect(due.map(({ entry }) => entry.clientAddress)).toEqual(["192.0.2.2", ""]);
  });

  it("are not forgotten if they came while the first one could not be written", () => {
    const budget = new RefusalBudget();
    for (let i = 0; i < 3; i += 1) budget.take(refused(), 0);
    budget.undo(refused(), 0);
    expect(detailsOf(budget.takeDue(hourMs))).toEqual(["unrecorded=2"]);
  });

  it.each([
    ["at once when the store closes", 0, 1, true],
    ["even if the clock was set back", hourMs, 0, false],
  ])("are due %s", (_when, takenMs, dueMs, isClosing) => {
    const budget = new RefusalBudget();
    for (let i = 0; i < 3; i += 1) budget.take(refused(), takenMs);
    expect(detailsOf(budget.takeDue(dueMs, isClosing))).toEqual(["reason=KEY_NOT_FOUND, repeated=2"]);
    expect(budget.takeDue(dueMs, true)).toEqual([]);
  });
});

describe("a user's budget", () => {
  it("allows 1,000 entries, and further ones become one entry when the hour ends", () => {
    const budget = new RefusalBudget();
    expect(takeMany(budget, 5000)).toEqual({ write: 1000, unrecorded: 4000 });
    expect(budget.takeDue(hourMs - 1)).toEqual([]);
    const sum = { keyId: "", operation: "REFUSALS", user: "ada", outcome: "REFUSED" };
    expect(budget.takeDue(hourMs)).toEqual([{ entry: { ...sum, details: "unrecorded=4000" }, count: 4000 }]);
    expect(takeMany(budget, 5000, hourMs)).toEqual({ write: 1000, unrecorded: 4000 });
  });

  it("allows 1 MiB, whichever field of an entry is long", () => {
    for (const long of ["keyId", "details", "owner", "keyName", "requestId"] as const) {
      const budget = new RefusalBudget();
      let bytes = 0;
      for (let n = 0; n < 2000; n += 1) {
        const entry = refused(n, { [long]: `${n}${"€".repeat(1000)}` });
        if (budget.take(entry, 0) === "write") bytes += Buffer.byteLength(Object.values(entry).join(""));
      }
      expect(bytes).toBeGreaterThan(refusalBudget.bytes / 4);
      expect(bytes).toBeLessThanOrEqual(refusalBudget.bytes);
    }
  });

  it("also pays for entries of repetitions, which are added to the sum when it is used up", () => {
    const budget = new RefusalBudget();
    expect(takeMany(budget, refusalBudget.entries)).toEqual({ write: 1000 });
    expect(takeMany(budget, refusalBudget.entries)).toEqual({ repeated: 1000 });
    expect(budget.takeDue(refusalWindowMs)).toEqual([]);
    expect(detailsOf(budget.takeDue(hourMs))).toEqual(["unrecorded=1000"]);
  });

  it("applies to this user only, and has its sum written when the store closes", () => {
    const budget = new RefusalBudget();
    takeMany(budget, 1001);
    expect(takeMany(budget, 10, 0, { user: "bob" })).toEqual({ write: 10 });
    expect(detailsOf(budget.takeDue(1, true))).toEqual(["unrecorded=1"]);
  });
});

describe("the memory of budgets", () => {
  it("holds the repetitions of at most 4,096 refusals; further ones become entries, within the budgets", () => {
    const budget = new RefusalBudget();
    const users = Array.from({ length: 5 }, (_, i) => ({ user: `user-${i}` }));
    for (const more of users) takeMany(budget, 1000, 0, more);
    expect(users.map((more) => takeMany(budget, 1000, 0, more))).toEqual([
      ...Array(4).fill({ repeated: 1000 }),
      { repeated: 96, unrecorded: 904 },
    ]);
  });

  it("holds separate budgets for at most 10,000 users; all others share one", () => {
    const budget = new RefusalBudget();
    for (let i = 0; i < 10_000; i += 1) budget.take(refused(1, { user: `user-${i}` }), 0);
    const late = ["x", "y"].map((user) => takeMany(budget, 600, 0, { user }));
    expect(late).toEqual([{ write: 600 }, { write: 400, unrecorded: 200 }]);
    const sums = budget.takeDue(hourMs).filter(({ entry }) => entry.operation === "REFUSALS");
    expect(sums.map(({ entry }) => `${entry.user} ${entry.details}`)).toEqual(["system unrecorded=200"]);
  });
});

it("signs outside the context of the call that wrote, so that it is not charged to the call", async () => {
  const context = new AsyncLocalStorage<string>();
  const { promise: signedIn, resolve } = Promise.withResolvers<string | undefined>();
  const schedule = createCheckpointSchedule({
    readTrueHead: async () => {
      resolve(context.getStore());
      return { sequence: 0, entryHash: "" };
    },
    signer: { sign: () => Promise.reject(new Error("an empty log is not signed")) },
    write: async () => {},
    now: () => new Date(0),
    log: keyLog,
    background: unobserved,
  });
  onTestFinished(() => schedule.close());
  context.run("a call", () => schedule.entriesWritten());
  expect(await signedIn).toBeUndefined();
});

/** What the server remembers of calls: lists, expiring items, recent entries, and whose turn it is. */
import { describe, expect, it } from "vitest";
import { createCallerMutex } from "../../src/calls/caller-mutex.ts";
import { Expiries, type Expiring, LiveList } from "../../src/calls/live-list.ts";
import { RecentMap } from "../../src/calls/recent-map.ts";

describe("a list", () => {
  it("keeps the order of its items and removes each once", () => {
    const list = new LiveList<string>();
    const [first, second, third] = [list.add("a"), list.add("b"), list.add("c")];
    second.leave();
    second.leave();
    expect([list.items(), list.size]).toEqual([["a", "c"], 2]);
    first.leave();
    third.leave();
    list.add("d");
    expect([list.items(), list.size]).toEqual([["d"], 1]);
  });
});

describe("expiring items", () => {
  const expiring = (inMs: number): Expiring & { readonly expired: Promise<number> } => {
    const { promise, resolve } = Promise.withResolvers<number>();
    return {
      expiresAtMs: performance.now() + inMs,
      expire: () => resolve(performance.now()),
      expired: promise,
    };
  };

  it("never expire early, and expire together at the same time", async () => {
    const items = new Expiries<Expiring>();
    const [one, other] = [expiring(35), expiring(35)];
    for (const item of [one, other]) items.add(item);
    const times = await Promise.all([one.expired, other.expired]);
    expect(Math.min(...times)).toBeGreaterThanOrEqual(Math.min(one.expiresAtMs, other.expiresAtMs));
  });

  it("expire if their time had passed when they were added", async () => {
    const items = new Expiries<Expiring>();
    const late = expiring(-1000);
    items.add(late);
    await late.expired;
  });

  it("do not expire once removed", async () => {
    const items = new Expiries<Expiring>();
    const [left, other] = [expiring(20), expiring(40)];
    let isExpired = false;
    void left.expired.then(() => {
      isExpired = true;
    });
    items.add(left).leave();
    items.add(other);
    await other.expired;
    expect(isExpired).toBe(false);
  });

  it("expire again after a period without items", async () => {
    const items = new Expiries<Expiring>();
    for (let round = 0; round < 2; round += 1) {
      const item = expiring(15);
      const place = items.add(item);
      await item.expired;
      // The interval stops when the list is empty.
      place.leave();
    }
  });
});

/** A map whose entries are kept for at least 100 ms, on a test clock. */
function create(maxEntries = 1000) {
  const clock = { nowMs: 0 };
  const map = new RecentMap<number>({ lifetimeMs: 100, maxEntries, nowMs: () => clock.nowMs });
  return { map, clock };
}

describe("a recent map", () => {
  it("keeps an entry for its lifetime, and evicts it in the next one", () => {
    const { map, clock } = create();
    map.set("first", 1);
    clock.nowMs = 99;
    map.set("late", 2);
    clock.nowMs = 198;
    map.set("other", 3);
    expect([map.get("first"), map.get("late"), map.get("other")]).toEqual([1, 2, 3]);
    clock.nowMs = 298;
    map.set("last", 4);
    expect([map.get("first"), map.get("late"), map.get("other")]).toEqual([undefined, undefined, 3]);
  });

  it("keeps an entry that is set repeatedly", () => {
    const { map, clock } = create();
    for (; clock.nowMs < 1000; clock.nowMs += 50) {
      map.set("ada", clock.nowMs);
      map.set(`visitor ${clock.nowMs}`, 0);
      expect(map.get("ada")).toBe(clock.nowMs);
    }
    expect(map.get("visitor 0")).toBeUndefined();
  });

  it("has at most twice its limit of entries, and evicts the earliest first", () => {
    const { map } = create(10);
    for (let i = 0; i < 1000; i += 1) {
      map.set(`${i}`, i);
      expect(map.size).toBeLessThanOrEqual(20);
      // The ten most recent entries.
      for (let last = Math.max(0, i - 9); last <= i; last += 1) expect(map.get(`${last}`)).toBe(last);
    }
    expect(map.get("0")).toBeUndefined();
  });
});

const { signal } = new AbortController();

it("the caller mutex runs a caller's work one at a time, even after a failure, without delaying other callers", async () => {
  const runExclusively = createCallerMutex();
  const first = Promise.withResolvers<string>();
  const begun: string[] = [];
  const take = (caller: string, name: string, work: () => Promise<string>) =>
    runExclusively(caller, signal, () => {
      begun.push(name);
      return work();
    });
  const one = take("ada", "one", () => first.promise);
  const two = take("ada", "two", async () => "done");
  expect(await take("bob", "other", async () => "done")).toBe("done");
  expect(begun).toEqual(["one", "other"]);
  first.reject(new Error("the store is down"));
  await expect(one).rejects.toThrow("down");
  expect(await two).toBe("done");
  expect(begun).toEqual(["one", "other", "two"]);
});

it("the caller mutex skips a call that has ended", async () => {
  const runExclusively = createCallerMutex();
  const first = Promise.withResolvers<void>();
  const one = runExclusively("ada", signal, () => first.promise);
  const caller = new AbortController();
  const two = runExclusively("ada", caller.signal, async () => "never");
  caller.abort(new Error("gone"));
  first.resolve();
  await one;
  await expect(two).rejects.toThrow("gone");
});

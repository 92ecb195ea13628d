import { describe, expect, it } from "vitest";
import { RecentMap } from "../../src/calls/recent-map.ts";

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

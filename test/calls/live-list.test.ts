/** Lists of items that come and go with every call, and expiring items. */
import { describe, expect, it } from "vitest";
import { Expiries, type Expiring, LiveList } from "../../src/calls/live-list.ts";

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

/** Lists of what comes and goes with every call, and the end of what has a time. */
import { describe, expect, it } from "vitest";
import { Expiries, type Expiring, LiveList } from "../../src/calls/live-list.ts";

describe("a list", () => {
  it("keeps the order of its items, and removes each once", () => {
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

describe("items with a time", () => {
  const expiring = (inMs: number): Expiring & { readonly expired: Promise<number> } => {
    const { promise, resolve } = Promise.withResolvers<number>();
    return {
      expiresAtMs: performance.now() + inMs,
      expire: () => resolve(performance.now()),
      expired: promise,
    };
  };

  it("never expire early, and those of one moment expire together", async () => {
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

  it("do not expire once they have left", async () => {
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

  it("expire again after a time without items", async () => {
    const items = new Expiries<Expiring>();
    for (let round = 0; round < 2; round += 1) {
      const item = expiring(15);
      const place = items.add(item);
      await item.expired;
      // The interval stops when it finds nothing.
      place.leave();
    }
  });
});

import { describe, expect, it } from "vitest";
import { FairQueue } from "../../src/crypto/fair-queue.ts";

/** Pushes `count` items for a caller, named a1, a2, … */
function fill(queue: FairQueue<string>, caller: string, count: number, costMs = 1, creditMs = 0): void {
  for (let i = 1; i <= count; i += 1) queue.push(`${caller}${i}`, { caller, costMs, creditMs });
}

function drain(queue: FairQueue<string>, most = Number.POSITIVE_INFINITY): string[] {
  const items: string[] = [];
  for (let item = queue.pop(); item !== undefined; item = queue.pop()) {
    items.push(item);
    if (items.length === most) break;
  }
  return items;
}

describe("FairQueue", () => {
  it("serves callers of equal cost in turn, in order of arrival", () => {
    const queue = new FairQueue<string>();
    fill(queue, "c", 3);
    fill(queue, "a", 2);
    fill(queue, "b", 1);
    expect(queue.size).toBe(6);
    expect(drain(queue)).toEqual(["c1", "a1", "b1", "c2", "a2", "c3"]);
    expect([queue.pop(), queue.size]).toEqual([undefined, 0]);
  });

  it("serves a late caller before callers that have had their turn", () => {
    const queue = new FairQueue<string>();
    fill(queue, "m", 1000);
    drain(queue, 500);
    fill(queue, "a", 2);
    expect(drain(queue, 4)).toEqual(["a1", "m501", "a2", "m502"]);
  });

  it("serves a caller with credit first until the credit is used up, then in turn", () => {
    const queue = new FairQueue<string>();
    fill(queue, "m", 4, 10);
    drain(queue, 1);
    fill(queue, "a", 5, 10, 20);
    expect(drain(queue)).toEqual(["a1", "a2", "a3", "m2", "a4", "m3", "a5", "m4"]);
  });

  it("multiplies a caller's share by its weight", () => {
    const queue = new FairQueue<string>();
    fill(queue, "m", 100);
    for (let i = 1; i <= 100; i += 1) queue.push(`a${i}`, { caller: "a", costMs: 1, weight: 3 });
    const served = drain(queue, 80);
    expect(served.filter((item) => item.startsWith("a"))).toHaveLength(60);
  });

  it("does not starve a caller, however many new ones arrive", () => {
    const queue = new FairQueue<string>();
    let served = 0;
    for (let i = 0; i < 10; i += 1) queue.push("new", { caller: `early ${i}`, costMs: 1 });
    for (let i = 0; i < 1000; i += 1) {
      if (i % 40 === 0) queue.push("ada", { caller: "ada", costMs: 1 });
      // As many arrive as are served, each with a first item.
      queue.push("new", { caller: `new ${i}`, costMs: 1 });
      if (queue.pop() === "ada") served += 1;
    }
    expect(served).toBeGreaterThanOrEqual(23);
  });

  it("forgets all callers once nobody is waiting", () => {
    const queue = new FairQueue<string>();
    fill(queue, "m", 10, 100);
    drain(queue);
    fill(queue, "m", 1);
    fill(queue, "a", 1);
    expect(drain(queue)).toEqual(["m1", "a1"]);
  });

  it("loses no item of any caller, however many come once", () => {
    const queue = new FairQueue<string>();
    fill(queue, "m", 20_000, 0.5);
    for (let i = 0; i < 10_000; i += 1) {
      queue.push(`once ${i}`, { caller: `caller ${i}`, costMs: 1 });
      drain(queue, 2);
    }
    expect(drain(queue)).toHaveLength(10_000);
  });
});

/** What event loops share: exact under contention of real threads, and cleaned up after a thread that died. */
import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { describe, expect, it, onTestFinished } from "vitest";
import { firstPlace, hashName, setSize } from "../../src/shared-memory/names.ts";
import { allocateRecentNames, RecentNames } from "../../src/shared-memory/recent-names.ts";
import { allocateSharedMemory, openSharedMemory } from "../../src/shared-memory/shared-memory.ts";
import type { ContenderInput } from "./contender-thread.ts";

const workers = 4;

function share() {
  const parts = allocateSharedMemory({ workers, slowPlaces: 2, passwordPlaces: 1 });
  const inside = new SharedArrayBuffer(4);
  const start = (worker: number, task: ContenderInput["task"], times = 0): Worker => {
    const workerData: ContenderInput = { parts, worker, task, times, inside };
    const thread = new Worker(new URL("contender-thread.ts", import.meta.url), { workerData });
    onTestFinished(async () => void (await thread.terminate()));
    return thread;
  };
  /** Has three threads do the same at once. @returns the most that were inside at a time */
  const contend = async (task: ContenderInput["task"], times: number): Promise<number> => {
    const threads = [1, 2, 3].map((worker) => start(worker, task, times));
    const answers = await Promise.all(threads.map((thread) => once(thread, "message")));
    return Math.max(...answers.map(([most]) => most as number));
  };
  return {
    parts,
    own: openSharedMemory(parts, 0),
    open: (worker: number) => openSharedMemory(parts, worker),
    start,
    contend,
  };
}

describe("the hash of a name", () => {
  const names = Array.from({ length: 20_000 }, (_, i) => `address 192.0.${i >> 8}.${i & 255}`);

  it("is a whole number from 1 to 2^53, and differs for all of 20,000 addresses", () => {
    const hashes = names.map((name) => hashName(name, 42));
    expect(new Set(hashes).size).toBe(names.length);
    for (const hash of hashes) expect(hash >= 1 && hash <= 2 ** 53 && Number.isInteger(hash)).toBe(true);
  });

  it("spreads names evenly over the sets", () => {
    const places = 2 ** 15;
    const counts = new Map<number, number>();
    for (const name of names) {
      const first = firstPlace(hashName(name, 42), places);
      expect(first % setSize).toBe(0);
      counts.set(first, (counts.get(first) ?? 0) + 1);
    }
    // 4.9 names a set on average.
    expect(Math.max(...counts.values())).toBeLessThan(20);
  });

  it("depends on the seed, so that nobody can choose names that share a set", () => {
    expect(hashName("user ada", 1)).not.toBe(hashName("user ada", 2));
  });
});

describe("numbers by name", () => {
  it("lose no change of threads that change them at once", async () => {
    const { own, contend } = share();
    await contend("count", 20_000);
    expect(own.logIns.update("ada", ({ value }) => value)).toBe(60_000);
  });

  it("forget the one of a full set that has the earliest time", () => {
    const table = new RecentNames(allocateRecentNames(setSize, 42), 0);
    const remember = (name: string, atMs: number) =>
      table.update(name, (entry) => {
        entry.atMs = atMs;
      });
    const knows = (name: string) => table.update(name, ({ atMs }) => atMs > 0);
    for (let i = 1; i <= setSize; i += 1) remember(`name ${i}`, i === 3 ? 1 : 10 + i);
    remember("one more", 100);
    expect(Array.from({ length: setSize }, (_, i) => knows(`name ${i + 1}`))).toEqual(
      Array.from({ length: setSize }, (_, i) => i !== 2),
    );
    expect(knows("one more")).toBe(true);
  });

  it("do not remember a name that is only read", () => {
    const { own } = share();
    own.logIns.update("ada", () => {});
    expect(own.logIns.update("ada", ({ atMs }) => atMs)).toBe(0);
  });
});

describe("what clients hold", () => {
  it("is counted over all workers, and given back when a claim closes", () => {
    const { open } = share();
    const [one, other] = [open(1).clients.claim("ada"), open(2).clients.claim("ada")];
    one.add("bytes", 300);
    other.add("bytes", 200);
    expect([one.sum("bytes"), other.sum("bytes")]).toEqual([500, 500]);
    expect(open(3).clients.claim("bob").sum("bytes")).toBe(0);
    one.close();
    one.close();
    one.add("bytes", 1000);
    expect(other.sum("bytes")).toBe(200);
  });

  it("stays within its limit under contention, and is nothing in the end", async () => {
    const { own, contend } = share();
    expect(await contend("enter", 20_000)).toBeLessThanOrEqual(2);
    expect(own.clients.claim("ada").sum("calls")).toBe(0);
  });

  it("shares one count between clients whose set is full, and loses nothing of others", () => {
    const { own } = share();
    const claims = Array.from({ length: 40_000 }, (_, i) => own.clients.claim(`client ${i}`));
    for (const claim of claims) claim.add("calls", 1);
    const alone = claims.filter((claim) => claim.sum("calls") === 1).length;
    expect(alone).toBeGreaterThan(30_000);
    for (const claim of claims) claim.close();
    expect(claims.filter((claim) => claim.sum("calls") !== 0)).toEqual([]);
  });

  it("no longer counts what a worker held that died", async () => {
    const { own, start } = share();
    const thread = start(1, "hold");
    await once(thread, "message");
    const ada = own.clients.claim("ada");
    ada.add("streams", 1);
    expect(ada.sum("streams")).toBe(4);
    await thread.terminate();
    own.release(1);
    expect(ada.sum("streams")).toBe(1);
  });
});

describe("places", () => {
  it("are never taken by more threads than there are", async () => {
    const { contend } = share();
    expect(await contend("take", 300)).toBe(2);
  });

  it("go to who waits, also on another event loop, when one is left", async () => {
    const { open } = share();
    const leave = await open(1).writeTurn.take();
    let isTaken = false;
    const waiting = open(2)
      .writeTurn.take()
      .then((leaveAgain) => {
        isTaken = true;
        return leaveAgain;
      });
    await setImmediate();
    expect(isTaken).toBe(false);
    leave();
    (await waiting)();
  });

  it("let others go first when a worker comes back at once", async () => {
    const { open } = share();
    const [one, other] = [open(1).writeTurn, open(2).writeTurn];
    const order: string[] = [];
    const leave = await one.take();
    const theirs = other.take().then((leaveTheirs) => {
      order.push("other");
      leaveTheirs();
    });
    await setImmediate();
    leave();
    const again = one.take().then((leaveAgain) => {
      order.push("one");
      leaveAgain();
    });
    await Promise.all([theirs, again]);
    expect(order).toEqual(["other", "one"]);
  });

  it("are free again after the worker that had them died", async () => {
    const { own, start } = share();
    const thread = start(1, "hold");
    await once(thread, "message");
    const waiting = own.writeTurn.take();
    await thread.terminate();
    own.release(1);
    (await waiting)();
    const leaves = await Promise.all([own.slowPlaces.take(), own.slowPlaces.take()]);
    for (const leave of leaves) leave();
  });
});

describe("notices", () => {
  it("reach the other workers, and not the one that sends them", async () => {
    const { open } = share();
    const [one, other] = [open(1).writes, open(2).writes];
    const heard: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const stops = [
      one.listen(() => void heard.push("one")),
      other.listen(() => {
        heard.push("other");
        resolve();
      }),
    ];
    one.send();
    await promise;
    await setImmediate();
    expect(heard).toEqual(["other"]);
    for (const stop of stops) stop();
  });
});

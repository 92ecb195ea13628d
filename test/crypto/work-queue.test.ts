import { describe, expect, it, onTestFinished, vi } from "vitest";
import { findCost } from "../../src/crypto/costs.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { FairQueue } from "../../src/crypto/fair-queue.ts";
import { queueProvider } from "../../src/crypto/queued-provider.ts";
import { CryptoBusyError, systemCaller, WorkQueue } from "../../src/crypto/work-queue.ts";

const maxWaitMs = 1000;

/** Longer than any wait in these tests, in milliseconds. */
const anyBacklogMs = 1e6;

/** A queue on a manual clock, and a list of the work that reached its threads, in order. */
function createQueue(threads: number, maxBacklogMs = anyBacklogMs, busyElsewhere = () => 0) {
  let nowMs = 0;
  const begun: string[] = [];
  const pieces = new Map<string, PromiseWithResolvers<string>>();
  const queue = new WorkQueue({ threads, maxWaitMs, maxBacklogMs, busyElsewhere, now: () => nowMs });
  const ask =
    (costMs: number, isUnbounded: boolean) =>
    (name: string, caller = "ada"): Promise<string> =>
      queue.run({
        caller,
        costMs,
        isSlow: costMs > 20,
        isUnbounded,
        start: () => {
          begun.push(name);
          const piece = Promise.withResolvers<string>();
          pieces.set(name, piece);
          return piece.promise;
        },
      });
  return {
    queue,
    begun,
    quick: ask(1, false),
    slow: ask(600, false),
    unbounded: ask(600, true),
    ask,
    pass: (ms: number) => {
      nowMs += ms;
    },
    end: (name: string, tookMs = 600) => {
      nowMs += tookMs;
      pieces.get(name)?.resolve(name);
    },
    fail: (name: string) => pieces.get(name)?.reject(new Error(name)),
  };
}

/** How a piece of work ended: "busy" if it was rejected. */
function outcome(work: Promise<string>): Promise<string> {
  return work.catch((error: Error) =>
    error instanceof CryptoBusyError ? "busy" : `failed ${error.message}`,
  );
}

describe("WorkQueue", () => {
  it("hands each thread 10 ms of quick work, and more as work completes", async () => {
    const { ask, begun, end } = createQueue(2);
    const quick = ask(2, false);
    const names = Array.from({ length: 100 }, (_, i) => `quick ${i}`);
    const all = names.map((name) => quick(name));
    expect(begun).toEqual(names.slice(0, 10));
    end("quick 0", 2);
    await all[0];
    expect(begun).toEqual(names.slice(0, 11));
  });

  it("leaves cores to other work, except one", () => {
    let busy = 1;
    const { ask, begun } = createQueue(2, anyBacklogMs, () => busy);
    const quick = ask(2, false);
    const askTimes = (times: number): void => {
      for (let i = 0; i < times; i += 1) void quick("quick");
    };
    askTimes(100);
    expect(begun).toHaveLength(5);
    busy = 2;
    askTimes(100);
    expect(begun).toHaveLength(5);
  });

  it.each([
    { threads: 1, places: 1 },
    { threads: 2, places: 1 },
    { threads: 4, places: 3 },
  ])("limits slow work to $places of $threads threads", ({ threads, places }) => {
    const { unbounded, begun } = createQueue(threads);
    const names = Array.from({ length: 6 }, (_, i) => `slow ${i}`);
    for (const name of names) void unbounded(name);
    expect(begun).toEqual(names.slice(0, places));
  });

  it("gives a free thread to waiting work, not to work that arrives at that moment", async () => {
    const { unbounded, begun, end } = createQueue(2);
    const first = unbounded("slow 1");
    void unbounded("slow 2");
    end("slow 1");
    await first.then(() => void unbounded("slow 3"));
    expect(begun).toEqual(["slow 1", "slow 2"]);
  });

  it("does not reject quick work while slow work fills its lane", () => {
    const { unbounded, quick, begun, queue } = createQueue(2);
    for (let i = 0; i < 10; i++) void unbounded(`slow ${i}`);
    expect(queue.expectedWaitMs).toBe(0);
    void quick("quick");
    expect(begun).toContain("quick");
  });

  it("rejects quick work by its wait for the remaining threads", async () => {
    const { ask, unbounded, queue } = createQueue(2);
    const quick = ask(15, false);
    for (let i = 0; i < 100; i++) void quick(`quick ${i}`);
    expect(queue.expectedWaitMs).toBe(750);
    void unbounded("slow");
    expect(queue.expectedWaitMs).toBe(1500);
    expect(await outcome(quick("one more"))).toBe("busy");
  });

  it("rejects slow work by the wait in its own lane", async () => {
    const { slow, begun, queue } = createQueue(2);
    void slow("slow 1");
    void slow("slow 2");
    expect(queue.expectedSlowWaitMs).toBe(1200);
    await expect(slow("slow 3")).rejects.toMatchObject({ name: "CryptoBusy", retryMs: 1200 });
    expect([begun, queue.depth]).toEqual([["slow 1"], 2]);
  });

  it("counts only the remaining time of running slow work", () => {
    const { slow, queue, pass } = createQueue(2);
    void slow("slow 1");
    void slow("slow 2");
    pass(500);
    expect(queue.expectedSlowWaitMs).toBe(700);
    pass(500);
    expect(queue.expectedSlowWaitMs).toBe(600);
  });

  it("lets unbounded work wait", async () => {
    const { unbounded, begun, queue, end } = createQueue(2);
    const all = Array.from({ length: 20 }, (_, i) => unbounded(`slow ${i}`));
    expect([queue.depth, queue.expectedSlowWaitMs]).toEqual([20, 12_000]);
    for (const [i, work] of all.entries()) {
      end(`slow ${i}`);
      await work;
    }
    expect([begun.length, queue.depth, queue.expectedSlowWaitMs]).toEqual([20, 0, 0]);
  });

  it("frees the thread of work that fails", async () => {
    const { unbounded, begun, fail, queue } = createQueue(2);
    const works = ["slow 1", "slow 2", "slow 3"].map((name) => outcome(unbounded(name)));
    for (const [i, work] of works.entries()) {
      fail(`slow ${i + 1}`);
      expect(await work).toBe(`failed slow ${i + 1}`);
    }
    expect([begun, queue.depth]).toEqual([["slow 1", "slow 2", "slow 3"], 0]);
  });

  it("lets quick work run between two pieces of slow work on a single thread", async () => {
    const { unbounded, quick, begun, queue, pass, end } = createQueue(1);
    const first = unbounded("slow 1");
    void unbounded("slow 2");
    void quick("quick");
    pass(200);
    expect(queue.expectedWaitMs).toBe(401);
    end("slow 1");
    await first;
    expect(begun).toEqual(["slow 1", "quick", "slow 2"]);
  });
});

/** Lets resolved promises start their continuations. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}

describe("WorkQueue with several callers", () => {
  /** Finishes the started work in order, until none is left. */
  async function drain({ begun, end }: Pick<ReturnType<typeof createQueue>, "begun" | "end">): Promise<void> {
    for (let i = 0; i < begun.length; i += 1) {
      end(begun[i] ?? "", 1);
      await settle();
    }
  }

  it("charges each for the cost of its work", async () => {
    const { ask, begun, end } = createQueue(1);
    void ask(20, true)("first", "bob");
    for (const name of ["m1", "m2", "m3"]) void ask(8, true)(name, "mallory");
    for (const name of ["a1", "a2", "a3", "a4", "a5"]) void ask(2, true)(name, "ada");
    await drain({ begun, end });
    expect(begun).toEqual(["first", "m1", "a1", "a2", "a3", "a4", "m2", "a5", "m3"]);
  });

  it("never rejects a caller because of another caller's work", async () => {
    const { ask, queue } = createQueue(2, 5000);
    const batch = ask(600, true);
    const sign = ask(600, false);
    const batches = Array.from({ length: 100 }, (_, i) => outcome(batch(`m${i}`, "mallory")));
    expect(await Promise.race([...batches].reverse())).toBe("busy");
    expect(await outcome(sign("m", "mallory"))).toBe("busy");
    void sign("a", "ada");
    expect(queue.slow.refused).toBe(92);
    expect(queue.slow.callers).toBe(2);
  });

  it("rejects unbounded work of a caller with too much of it", async () => {
    const { unbounded } = createQueue(2, 1500);
    void unbounded("1");
    void unbounded("2");
    void unbounded("3");
    await expect(unbounded("4")).rejects.toMatchObject({ name: "CryptoBusy", retryMs: 1800 });
  });

  it("shortens each caller's allowed backlog as the number of callers grows", async () => {
    const { slow } = createQueue(2);
    void slow("a1", "ada");
    void slow("b1", "bob");
    // A second piece from ada would start after her first and bob's first.
    expect(await outcome(slow("a2", "ada"))).toBe("busy");
    void slow("c1", "carol");
  });

  it("does the server's own work first and never rejects it", async () => {
    const { ask, begun, end } = createQueue(1, 1);
    const sign = ask(20, true);
    void sign("first", "bob");
    for (const name of ["a1", "b1"]) void sign(name, name);
    for (let i = 0; i < 100; i += 1) void sign(`s${i}`, systemCaller);
    await drain({ begun, end });
    expect(begun).toHaveLength(103);
    expect(begun.slice(-2)).toEqual(["a1", "b1"]);
  });
});

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

describe("the cost of an operation", () => {
  it("grows with the message, but a long message does not make quick work slow", () => {
    const short = findCost("sign", "ML-DSA-65", { messageBytes: 32 });
    const long = findCost("sign", "ML-DSA-65", { messageBytes: 64 * 1024 * 1024 });
    expect(long.costMs).toBeGreaterThan(100 * short.costMs);
    expect([short.isSlow, long.isSlow]).toEqual([false, false]);
  });

  it.each([
    ["sign", "SLH-DSA-SHA2-128s", true],
    ["import", "SLH-DSA-SHAKE-256s", true],
    ["generate", "SLH-DSA-SHA2-192s", true],
    ["verify", "SLH-DSA-SHAKE-256s", false],
    ["generate", "SLH-DSA-SHA2-128f", false],
    ["sign", "ML-DSA-87", false],
    ["sign representative", "ML-DSA-87", false],
    ["decapsulate", "X-Wing", false],
  ] as const)("assigns %s with %s to the right lane", (operation, algorithm, isSlow) => {
    expect(findCost(operation, algorithm).isSlow).toBe(isSlow);
  });
});

/** Signatures and imports take the slow lane, and a few milliseconds; key generation takes the quick lane. */
const algorithm = "SLH-DSA-SHA2-128f";

async function createProvider(maxWaitMs: number) {
  const queue = new WorkQueue({ threads: 2, maxWaitMs, maxBacklogMs: 60_000 });
  const provider = queueProvider(await createCryptoProvider("openssl"), queue, { callerOf: () => "ada" });
  onTestFinished(() => provider.close());
  return { provider, queue };
}

it("signs the message as it was when called, even if the caller overwrites it while it waits", async () => {
  const { provider } = await createProvider(60_000);
  const { publicKey, secretKey } = await provider.generateKeyPair(algorithm);
  const first = provider.sign(secretKey, new Uint8Array(8));
  const message = new Uint8Array(8).fill(1);
  const context = new Uint8Array(8).fill(2);
  const second = provider.sign(secretKey, message, { context });
  message.fill(3);
  context.fill(3);
  await first;
  const asked = { message: new Uint8Array(8).fill(1), context: new Uint8Array(8).fill(2) };
  expect(await provider.verify(publicKey, asked.message, await second, { context: asked.context })).toBe(
    true,
  );
});

it("imports a key in the slow lane, and lets it wait as long as a batch", async () => {
  const { provider, queue } = await createProvider(0);
  const { secretKey } = await provider.generateKeyPair(algorithm);
  const raw = secretKey.exportRaw();
  const open = () => provider.importSecretKey(algorithm, { raw });
  const opening = [open(), open(), open()];
  expect(queue.expectedSlowWaitMs).toBeGreaterThan(0);
  const opened = await Promise.all(opening);
  expect(opened.map((key) => key.exportRaw())).toEqual([raw, raw, raw]);
  expect(queue.depth).toBe(0);
});

it("charges the current caller, except for the system variant, which is never rejected", async () => {
  const queue = new WorkQueue({ threads: 1, maxWaitMs: 1, maxBacklogMs: 1 });
  let caller = "mallory";
  const provider = queueProvider(await createCryptoProvider("openssl"), queue, { callerOf: () => caller });
  onTestFinished(() => provider.close());
  const made = ["mallory", "mallory", "ada"].map((name) => {
    caller = name;
    return provider.unbounded.generateKeyPair("SLH-DSA-SHA2-128s").then(
      () => `${name} made one`,
      (error: Error) => `${name}: ${error.name}`,
    );
  });
  const checked = [provider.system, provider.system].map((system) =>
    system.generateKeyPair("SLH-DSA-SHA2-128s"),
  );
  expect(queue.slow.callers + queue.quick.callers).toBe(3);
  expect(await Promise.all(made)).toEqual(["mallory made one", "mallory: CryptoBusy", "ada made one"]);
  expect(await Promise.all(checked)).toHaveLength(2);
});

it("charges shared work to one caller of its own, and does not end it with the call that began it", async () => {
  const queue = new WorkQueue({ threads: 1, maxWaitMs: 60_000, maxBacklogMs: 60_000 });
  let caller = "ada";
  const provider = queueProvider(await createCryptoProvider("openssl"), queue, {
    callerOf: () => caller,
    signalOf: () => AbortSignal.abort(),
  });
  onTestFinished(() => provider.close());
  const made = ["ada", "bob", "eve"].map((name) => {
    caller = name;
    return provider.shared.generateKeyPair("SLH-DSA-SHA2-128s");
  });
  expect(queue.slow.callers + queue.quick.callers).toBe(1);
  expect(await Promise.all(made)).toHaveLength(3);
});

it("skips work that nobody waits for, and starts the caller's next work", async () => {
  const queue = new WorkQueue({ threads: 1, maxWaitMs: 60_000, maxBacklogMs: 60_000 });
  let signal = new AbortController().signal;
  const inner = await createCryptoProvider("openssl");
  const sign = vi.spyOn(inner, "sign");
  const provider = queueProvider(inner, queue, { callerOf: () => "ada", signalOf: () => signal });
  onTestFinished(() => provider.close());
  const { secretKey } = await provider.generateKeyPair(algorithm);
  const first = provider.sign(secretKey, new Uint8Array(1));
  const leaving = new AbortController();
  signal = leaving.signal;
  const left = [2, 3, 4].map((length) => provider.sign(secretKey, new Uint8Array(length)));
  leaving.abort(new Error("the caller left"));
  const outcomes = await Promise.allSettled(left);
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  expect(queue.depth).toBe(1);
  signal = new AbortController().signal;
  await Promise.all([first, provider.sign(secretKey, new Uint8Array(5))]);
  expect(sign.mock.calls.map(([, message]) => message.length)).toEqual([1, 5]);
});

it("charges more for signing and verifying μ, which OpenSSL leaves to JavaScript", async () => {
  const { provider, queue } = await createProvider(60_000);
  const { publicKey, secretKey } = await provider.generateKeyPair("ML-DSA-65");
  const mu = new Uint8Array(64);
  const charge = async (start: () => Promise<unknown>): Promise<number> => {
    const running = start();
    const ms = queue.quick.totalMs;
    await running;
    return ms;
  };
  const signature = await provider.signRepresentative(secretKey, mu);
  const pairs = [
    [() => provider.signRepresentative(secretKey, mu), () => provider.sign(secretKey, mu)],
    [
      () => provider.verifyRepresentative(publicKey, mu, signature),
      () => provider.verify(publicKey, mu, signature),
    ],
  ] as const;
  for (const [byJavaScript, byOpenSsl] of pairs)
    expect(await charge(byJavaScript)).toBeGreaterThan(10 * (await charge(byOpenSsl)));
});

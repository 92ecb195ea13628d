import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it } from "vitest";
import { createCallerMutex } from "../../src/calls/caller-mutex.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { queueProvider } from "../../src/crypto/queued-provider.ts";
import { WorkQueue } from "../../src/crypto/work-queue.ts";
import { createAuditVerifications } from "../../src/services/kms/verify-audit.ts";
import { shareVerifications } from "../../src/services/shared-verifications.ts";

/** Verifications that end when the test lets them. */
function makeVerifications(line = createCallerMutex()) {
  const runs: (PromiseWithResolvers<number> & { signal: AbortSignal; show: (checked: number) => void })[] =
    [];
  const shared = shareVerifications(line, ({ signal, onProgress }) => {
    const run = Promise.withResolvers<number>();
    runs.push({ ...run, signal, show: (checked) => onProgress(checked, 100) });
    signal.addEventListener("abort", () => run.reject(signal.reason));
    return run.promise;
  });
  return { runs, shared };
}

const forever = new AbortController().signal;
const settle = () => new Promise(setImmediate);

describe("shareVerifications", () => {
  it("runs one verification for a hundred waiting callers, after the running one", async () => {
    const { runs, shared } = makeVerifications();
    const first = shared.wait({ signal: forever });
    await settle();
    const others = Array.from({ length: 100 }, () => shared.wait({ signal: forever }));
    await settle();
    expect(runs).toHaveLength(1);
    runs[0]?.resolve(1);
    expect(await first).toBe(1);
    await settle();
    runs[1]?.resolve(2);
    expect(new Set(await Promise.all(others))).toEqual(new Set([2]));
    expect(runs).toHaveLength(2);
  });

  it("runs one verification at a time across kinds", async () => {
    const line = createCallerMutex();
    const [one, other] = [makeVerifications(line), makeVerifications(line)];
    const first = one.shared.wait({ signal: forever });
    const second = other.shared.wait({ signal: forever });
    await settle();
    expect([one.runs.length, other.runs.length]).toEqual([1, 0]);
    one.runs[0]?.reject(new Error("failed"));
    await expect(first).rejects.toThrow("failed");
    await settle();
    other.runs[0]?.resolve(2);
    expect(await second).toBe(2);
  });

  it("reports progress to all waiting callers", async () => {
    const { runs, shared } = makeVerifications();
    const shown: string[] = [];
    const waits = ["a", "b"].map((name) => {
      const onProgress = (checked: number, total: number) => shown.push(`${name} ${checked}/${total}`);
      return shared.wait({ signal: forever, onProgress });
    });
    await settle();
    runs[0]?.show(40);
    runs[0]?.resolve(1);
    await Promise.all(waits);
    expect(shown).toEqual(["a 40/100", "b 40/100"]);
  });

  it("cancels a run when its last caller leaves, not before", async () => {
    const { runs, shared } = makeVerifications();
    const [one, other] = [new AbortController(), new AbortController()];
    const waits = [one, other].map(({ signal }) => shared.wait({ signal }));
    await settle();
    one.abort();
    await expect(waits[0]).rejects.toMatchObject({ name: "AbortError" });
    expect(runs[0]?.signal.aborted).toBe(false);
    other.abort();
    await expect(waits[1]).rejects.toMatchObject({ name: "AbortError" });
    expect(runs[0]?.signal.aborted).toBe(true);
  });

  it("does not start a run whose callers have left", async () => {
    const { runs, shared } = makeVerifications();
    const first = shared.wait({ signal: forever });
    await settle();
    const leaving = new AbortController();
    const second = shared.wait({ signal: leaving.signal });
    leaving.abort();
    await expect(second).rejects.toMatchObject({ name: "AbortError" });
    runs[0]?.resolve(1);
    await first;
    const third = shared.wait({ signal: forever });
    await settle();
    runs[1]?.resolve(3);
    expect(await third).toBe(3);
    expect(runs).toHaveLength(2);
  });
});

describe("createAuditVerifications", () => {
  it("verifies for one caller although the caller who came first has left", async () => {
    const call = new AsyncLocalStorage<AbortSignal>();
    const busy = Promise.withResolvers<boolean>();
    const library = { verify: (_key: unknown, message: Uint8Array) => message.length > 0 || busy.promise };
    const queue = new WorkQueue({ threads: 1, maxWaitMs: 1000, maxBacklogMs: 1000 });
    const current = { callerOf: () => "ada", signalOf: () => call.getStore() };
    const provider = queueProvider(library as never, queue, current);
    const [key, none] = [{ algorithm: "ECDSA-P256" } as never, new Uint8Array()];
    // The threads are busy, so the verification of the log waits.
    const working = Array.from({ length: 200 }, () => provider.verify(key, none, none));
    const { whole } = createAuditVerifications({
      ...{ store: undefined, provider, now: () => new Date() },
      verifyAudit: (_store: unknown, by: CryptoProvider) => by.verify(key, Uint8Array.of(1), none),
    } as never);
    const [one, other] = [new AbortController(), new AbortController()];
    const first = call.run(one.signal, () => whole.wait({ signal: one.signal }));
    const second = call.run(other.signal, () => whole.wait({ signal: other.signal }));
    await settle();
    one.abort(new Error("left"));
    await expect(first).rejects.toThrow("left");
    busy.resolve(true);
    expect(await second).toBe(true);
    await Promise.all(working);
  });
});

import { expect, it, vi } from "vitest";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { invalid } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import { createKey, describeKmsOnBoth, describeReplicas, type KmsClient, withKey } from "./kms-server.ts";
import { readAudit } from "./read-audit.ts";

const data = bytesOf("hello");

/** Watches the log, and returns entries one at a time. */
function watch(kms: KmsClient, request: Parameters<KmsClient["watchAuditLog"]>[0], signal?: AbortSignal) {
  const answers = kms.watchAuditLog(request, signal ? { signal } : {})[Symbol.asyncIterator]();
  const next = async (): Promise<AuditEntry> => {
    const { value, done } = await answers.next();
    if (done) throw new Error("the watch ended");
    return present(value.entry);
  };
  const take = async (count: number): Promise<AuditEntry[]> => {
    const entries: AuditEntry[] = [];
    while (entries.length < count) entries.push(await next());
    return entries;
  };
  return { next, take };
}

async function signTimes(kms: KmsClient, keyId: string, times: number): Promise<void> {
  for (let i = 0; i < times; i += 1) await kms.sign({ keyId, data });
}

describeKmsOnBoth("KmsService.WatchAuditLog", (start, shared) => {
  it("sends only entries after the call if the request has no start", async () => {
    const { kms, keyId } = await withKey(start());
    await signTimes(kms, keyId, 3);
    const first = watch(kms, {}).take(3);
    let isThere = false;
    void first.finally(() => {
      isThere = true;
    });
    // The call does not report when it has begun, so create new entries until it has seen one.
    while (!isThere) await kms.sign({ keyId, data });
    const [begin = 0, ...later] = (await first).map(({ sequence }) => sequence);
    expect(begin).toBeGreaterThan(4);
    expect(later).toEqual([begin + 1, begin + 2]);
  });

  it("sends only entries of one key if the request names it", async () => {
    const { kms } = await shared();
    const [mine, other] = [await createKey(kms), await createKey(kms)];
    const { take } = watch(kms, { keyId: mine.keyId, afterSequence: 0 });
    expect((await take(1)).map(({ operation }) => operation)).toEqual(["CREATE"]);
    await signTimes(kms, other.keyId, 2);
    await kms.sign({ keyId: mine.keyId, data });
    await refusal(kms.encapsulate({ keyId: mine.keyId }));
    await signTimes(kms, other.keyId, 1);
    await kms.destroyKey({ keyId: mine.keyId });
    const { keyId } = mine;
    expect(await take(3)).toMatchObject([
      { keyId, operation: "SIGN", outcome: "OK" },
      { keyId, operation: "ENCAPSULATE", outcome: "REFUSED" },
      { keyId, operation: "DESTROY", outcome: "OK" },
    ]);
  });

  it("ends when its caller disconnects", async () => {
    const { kms, store } = await start();
    const stop = vi.fn();
    const onWrite = vi.spyOn(store, "onWrite").mockReturnValue(stop);
    const caller = new AbortController();
    const { keyId } = await createKey(kms);
    const { next } = watch(kms, { keyId, afterSequence: 0 }, caller.signal);
    await next();
    expect([onWrite.mock.calls.length, stop.mock.calls.length]).toEqual([1, 0]);
    const waiting = refusal(next());
    caller.abort();
    expect(await waiting).toMatchObject({ code: "Canceled" });
    await expect.poll(() => stop.mock.calls.length).toBe(1);
  });

  it("starts after the last entry, but not after the one that follows", async () => {
    const { kms, keyId } = await withKey(start());
    expect(await refusal(watch(kms, { afterSequence: 2 }).next())).toEqual(invalid("afterSequence"));
    const { take } = watch(kms, { afterSequence: 1 });
    const taken = take(1);
    await kms.destroyKey({ keyId });
    expect((await taken).map(({ operation }) => operation)).toEqual(["DESTROY"]);
  });
});

describeReplicas("KmsService.WatchAuditLog", (startTwo) => {
  it("streams old and new entries, from other replicas too, each once and in order", {
    timeout: 120_000,
  }, async () => {
    const [here, there] = await startTwo();
    const { keyId } = await createKey(there.kms);
    await signTimes(there.kms, keyId, 2);
    const { take } = watch(here.kms, { afterSequence: 0 });
    const old = await take(3);
    const both = [here, there].flatMap(({ kms }) =>
      Array.from({ length: 20 }, () => kms.sign({ keyId, data })),
    );
    await Promise.all(both);
    const entries = [...old, ...(await take(40))];
    expect(entries.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 43 }, (_, i) => i + 1));
    expect(entries).toEqual(await readAudit(there.kms));
  });
});

import { expect, it } from "vitest";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { invalid } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import {
  createKey,
  describeKmsOnBoth,
  describeReplicas,
  type KmsClient,
  type KmsServer,
} from "./kms-server.ts";
import { readAudit } from "./read-audit.ts";

const data = bytesOf("hello");

/** Watches the log, and returns entries one at a time. */
function watch(kms: KmsClient, request: Parameters<KmsClient["watchAuditLog"]>[0], signal?: AbortSignal) {
  const answers = kms.watchAuditLog(request, signal ? { signal } : {})[Symbol.asyncIterator]();
  const next = async (): Promise<AuditEntry> => {
    const { value, done } = await answers.next();
    if (done) throw new Error("the watch ended");
    expect(value.status).toBe("success");
    return present(value.entry);
  };
  const take = async (count: number): Promise<AuditEntry[]> => {
    const entries: AuditEntry[] = [];
    while (entries.length < count) entries.push(await next());
    return entries;
  };
  return { next, take };
}

/** Counts a server's watchers. */
function countWatchers({ store }: KmsServer): { readonly now: number } {
  const count = { now: 0 };
  const { onWrite } = store;
  Object.assign(store, {
    onWrite(listener: () => void) {
      count.now += 1;
      const stop = onWrite(listener);
      return () => {
        count.now -= 1;
        stop();
      };
    },
  });
  return count;
}

async function signTimes(kms: KmsClient, keyId: string, times: number): Promise<void> {
  for (let i = 0; i < times; i += 1) await kms.sign({ keyId, data });
}

describeKmsOnBoth("KmsService.WatchAuditLog", (start, shared) => {
  it("streams with afterSequence 0 all existing entries and then new ones, each once and in order", async () => {
    const { kms } = await start();
    const { keyId } = await createKey(kms);
    await signTimes(kms, keyId, 4);
    const { take } = watch(kms, { afterSequence: 0 });
    const old = await take(5);
    expect(old).toEqual(await readAudit(kms));
    await Promise.all(Array.from({ length: 20 }, () => kms.sign({ keyId, data })));
    const fresh = await take(20);
    expect(fresh.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 20 }, (_, i) => i + 6));
    expect([...old, ...fresh]).toEqual(await readAudit(kms));
  });

  it("sends only entries after the call if the request has no start", async () => {
    const { kms } = await start();
    const { keyId } = await createKey(kms);
    await signTimes(kms, keyId, 3);
    const first = watch(kms, {}).take(3);
    let isThere = false;
    void first.finally(() => {
      isThere = true;
    });
    // The call does not report when it has begun, so create new entries until it has seen one.
    while (!isThere) await kms.sign({ keyId, data });
    const sequences = (await first).map(({ sequence }) => sequence);
    const [begin = 0] = sequences;
    expect(begin).toBeGreaterThan(4);
    expect(sequences).toEqual([begin, begin + 1, begin + 2]);
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
    const entries = await take(3);
    expect(entries.map(({ keyId }) => keyId)).toEqual(Array(3).fill(mine.keyId));
    expect(entries.map(({ operation, outcome }) => `${operation} ${outcome}`)).toEqual([
      "SIGN OK",
      "ENCAPSULATE REFUSED",
      "DESTROY OK",
    ]);
  });

  it("ends when its caller disconnects", async () => {
    const server = await start();
    const watchers = countWatchers(server);
    const caller = new AbortController();
    const { keyId } = await createKey(server.kms);
    const { next } = watch(server.kms, { keyId, afterSequence: 0 }, caller.signal);
    await next();
    expect(watchers.now).toBe(1);
    const waiting = refusal(next());
    caller.abort();
    expect(await waiting).toMatchObject({ code: "Canceled" });
    await expect.poll(() => watchers.now).toBe(0);
  });

  it("fails to start after an unknown entry, and starts after the last entry", async () => {
    const { kms } = await start();
    const { keyId } = await createKey(kms);
    expect(await refusal(watch(kms, { afterSequence: 2 }).next())).toEqual(invalid("afterSequence"));
    const { take } = watch(kms, { afterSequence: 1 });
    const taken = take(1);
    await kms.destroyKey({ keyId });
    expect((await taken).map(({ operation }) => operation)).toEqual(["DESTROY"]);
  });

  it.each([-1, 0.5, 2 ** 53, Number.NaN])("rejects afterSequence %d", async (afterSequence) => {
    const { kms } = await shared();
    await createKey(kms);
    expect(await refusal(watch(kms, { afterSequence }).next())).toEqual(invalid("afterSequence"));
  });
});

describeReplicas("KmsService.WatchAuditLog", (startTwo) => {
  it("streams entries from other replicas too, each once and in order", { timeout: 120_000 }, async () => {
    const [here, there] = (await startTwo()) as [KmsServer, KmsServer];
    const { keyId } = await createKey(there.kms);
    const { take } = watch(here.kms, { afterSequence: 0 });
    await take(1);
    await signTimes(there.kms, keyId, 2);
    expect((await take(2)).map(({ sequence }) => sequence)).toEqual([2, 3]);
    const both = [here, there].flatMap(({ kms }) =>
      Array.from({ length: 20 }, () => kms.sign({ keyId, data })),
    );
    await Promise.all(both);
    expect((await take(40)).map(({ sequence }) => sequence)).toEqual(
      Array.from({ length: 40 }, (_, i) => i + 4),
    );
  });
});

import { expect, it, vi } from "vitest";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { invalid } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import { createKey, describeKmsOnBoth, describeReplicas, type KmsClient, withKey } from "./kms-server.ts";
import { readAudit } from "./read-audit.ts";

const idsOf = (keys: readonly { keyId: string }[]) => keys.map(({ keyId }) => keyId);

/** Creates two ML-DSA-44 keys and one ML-KEM-512 key, rotates the second, and destroys the third. */
async function makeKeys(kms: KmsClient) {
  const first = await createKey(kms, { alias: "first" });
  const second = await createKey(kms, { alias: "second" });
  const third = await createKey(kms, { alias: "third", algorithm: "ML-KEM-512" });
  const fourth = present((await kms.rotateKey({ keyId: second.keyId })).newKey);
  await kms.destroyKey({ keyId: third.keyId });
  return [first, second, third, fourth].map(({ keyId }) => keyId) as [string, string, string, string];
}

describeKmsOnBoth("KmsService.ListKeys", ({ kms, start }) => {
  it("lists keys in creation order, without their public halves", async () => {
    const { kms } = await start();
    const ids = await makeKeys(kms);
    const { keys, nextPageToken, totalSize } = await kms.listKeys({});
    expect([nextPageToken, totalSize]).toEqual(["", 4]);
    expect(idsOf(keys)).toEqual(ids);
    expect(keys).toMatchObject([
      { alias: "first", algorithm: "ML-DSA-44", usage: "SIGN", status: "ACTIVE" },
      { alias: "second", algorithm: "ML-DSA-44", usage: "SIGN", status: "ROTATED" },
      { alias: "third", algorithm: "ML-KEM-512", usage: "KEM", status: "DESTROYED" },
      { alias: "second-rotated", algorithm: "ML-DSA-44", usage: "SIGN", status: "ACTIVE" },
    ]);
    const halves = keys.flatMap((key) => [key.publicKey, key.publicKeyPem, key.publicJwk]);
    expect(halves).toEqual(Array(12).fill(undefined));
    const { result } = await kms.getKey({ keyId: ids[1] });
    expect(keys[1]?.createdAt).toEqual(present(result).createdAt);
  });

  let making: Promise<readonly string[]> | undefined;
  it.each<[filter: { status?: string; algorithm?: string }, positions: number[]]>([
    [{ status: "ACTIVE" }, [0, 3]],
    [{ status: "ROTATED" }, [1]],
    [{ status: "DESTROYED" }, [2]],
    [{ algorithm: "ML-DSA-44" }, [0, 1, 3]],
    [{ algorithm: "ML-KEM-512" }, [2]],
    [{ algorithm: "ML-DSA-87" }, []],
    [{ status: "ACTIVE", algorithm: "ML-DSA-44" }, [0, 3]],
    [{ status: "DESTROYED", algorithm: "ML-DSA-44" }, []],
  ])("returns only keys matching %o, and counts them", async (filter, positions) => {
    making ??= makeKeys(kms);
    const ids = await making;
    const { keys, totalSize } = await kms.listKeys(filter);
    expect(idsOf(keys)).toEqual(positions.map((position) => ids[position]));
    expect(totalSize).toBe(positions.length);
  });
});

describeKmsOnBoth("KmsService.GetAuditLog", ({ start }) => {
  async function fillLog(kms: KmsClient): Promise<[string, string]> {
    const [{ keyId }, other] = [await createKey(kms), await createKey(kms)];
    for (let i = 0; i < 3; i += 1) {
      await kms.sign({ keyId, data: bytesOf("x") });
      await kms.sign({ keyId: other.keyId, data: bytesOf("x") });
    }
    return [keyId, other.keyId];
  }

  it.each([
    ["oldest", [1, 2, 3, 4, 5, 6, 7, 8, 9]],
    ["newest", [8, 7, 6, 5, 4, 3, 2, 1]],
  ])("returns pages, %s first, while entries are written", async (first, expected) => {
    const pageSize = 3;
    const { kms } = await start();
    const [keyId] = await fillLog(kms);
    const entries: AuditEntry[] = [];
    let pageToken = "";
    for (let i = 0; i < 8 / pageSize; i += 1) {
      const page = await kms.getAuditLog({ pageSize, pageToken, newestFirst: first === "newest" });
      expect(page.totalSize).toBe(8 + i);
      entries.push(...page.auditLog);
      pageToken = page.nextPageToken;
      await kms.sign({ keyId, data: bytesOf("x") });
    }
    expect(entries.map(({ sequence }) => sequence)).toEqual(expected);
  });
});

describeKmsOnBoth("a page token", ({ kms }) => {
  it("is rejected with other filters, another order, or another list", async () => {
    const [{ keyId }, other] = [await createKey(kms), await createKey(kms)];
    await kms.sign({ keyId, data: bytesOf("x") });
    const { nextPageToken: ofKeys } = await kms.listKeys({ status: "ACTIVE", pageSize: 1 });
    const { nextPageToken: ofEntries } = await kms.getAuditLog({ keyId, pageSize: 1 });
    const calls = [
      ...[{ status: "DESTROYED" }, { status: "ACTIVE", algorithm: "ML-DSA-44" }, {}].map((filter) =>
        kms.listKeys({ ...filter, pageToken: ofKeys }),
      ),
      ...[{ keyId: other.keyId }, {}, { keyId, newestFirst: true }].map((filter) =>
        kms.getAuditLog({ ...filter, pageToken: ofEntries }),
      ),
      kms.getAuditLog({ pageToken: ofKeys }),
    ];
    expect(await Promise.all(calls.map(refusal))).toEqual(Array(7).fill(invalid("pageToken")));
  });
});

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

describeKmsOnBoth("KmsService.WatchAuditLog", ({ kms, start }) => {
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

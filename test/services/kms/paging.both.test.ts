import { expect, it } from "vitest";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { invalid } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import { createKey, describeKmsOnBoth, type KmsClient } from "./kms-server.ts";

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

describeKmsOnBoth("KmsService.ListKeys", (start, shared) => {
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
    const { kms } = await shared();
    making ??= makeKeys(kms);
    const ids = await making;
    const { keys, totalSize } = await kms.listKeys(filter);
    expect(idsOf(keys)).toEqual(positions.map((position) => ids[position]));
    expect(totalSize).toBe(positions.length);
  });
});

describeKmsOnBoth("KmsService.GetAuditLog", (start) => {
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

describeKmsOnBoth("a page token", (_start, shared) => {
  it("is rejected with other filters, another order, or another list", async () => {
    const { kms } = await shared();
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

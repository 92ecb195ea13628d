import { verify } from "node:crypto";
import canonicalize from "canonicalize";
import { afterAll, beforeAll, expect, it } from "vitest";
import { checkpointMessage } from "../../src/audit/chain.ts";
import type { SignedCheckpoint } from "../../src/audit/verification.ts";
import type { Store } from "../../src/store/store.ts";
import { writeEntries } from "../support/entries.ts";
import { describeStores, type Place } from "../support/on-both.ts";
import { hashOfRow, readEntryRows, verdict } from "./audit-log.ts";

const genesis = "0".repeat(64);

/** The checkpoints that the store keeps. */
async function readCheckpoints({ query }: Place): Promise<SignedCheckpoint[]> {
  const rows = await query("select * from audit_checkpoints order by sequence");
  return rows.map((row) => ({
    sequence: Number(row.sequence),
    entryHash: String(row.entry_hash),
    signedAt: new Date(Number(row.signed_at_ms)),
    signature: row.signature as Uint8Array,
  }));
}

/** Verifies a checkpoint as an outsider would, from what the server publishes. */
function isSigned({ checkpointKey }: Store, checkpoint: SignedCheckpoint): boolean {
  return verify(null, checkpointMessage(checkpoint), checkpointKey.toPem(), checkpoint.signature);
}

/** Rows that do not chain to their predecessor. */
async function findGaps(place: Place): Promise<unknown[]> {
  const rows = await readEntryRows(place);
  return rows.filter((row, i) => {
    const previousHash = rows[i - 1]?.entry_hash ?? genesis;
    return row.sequence !== i + 1 || row.entry_hash !== hashOfRow(row, previousHash);
  });
}

describeStores("the audit chain", (makePlace) => {
  it("hashes each entry with the previous one, across transactions and restarts", async () => {
    const place = await makePlace();
    const store = await place.open();
    await writeEntries(store, 3);
    await writeEntries(store, 130);
    await store.close();
    await writeEntries(await place.open(), 2);
    expect(await readEntryRows(place)).toHaveLength(135);
    expect(await findGaps(place)).toEqual([]);
  });

  it("hashes quotes, control and non-ASCII characters as RFC 8785 writes them", async () => {
    const place = await makePlace();
    const store = await place.open();
    const text = 'a "quote", \\ / \u007f \t \u001f é € 😀 \u2028 e\u0301';
    await store.write(async ({ audit }) => {
      audit({ keyId: text, operation: text, user: text, outcome: "REFUSED", details: text });
    });
    expect(await readEntryRows(place)).toMatchObject([{ key_id: text, user_name: text, details: text }]);
    expect(await findGaps(place)).toEqual([]);
    expect(await store.verifyAudit()).toMatchObject({ valid: true, entries: 1 });
  });

  it("has no entry for failed work, and no gap after it", async () => {
    const place = await makePlace();
    const store = await place.open();
    await writeEntries(store, 2);
    const failing = store.write(async ({ audit }) => {
      audit({ keyId: "lost", operation: "SIGN", user: "ada", outcome: "OK", details: "" });
      throw new Error("changed our mind");
    });
    await expect(failing).rejects.toThrow("changed our mind");
    await writeEntries(store, 1);
    expect((await readEntryRows(place)).map(({ key_id }) => key_id)).toEqual(["key-1", "key-2", "key-1"]);
    expect(await findGaps(place)).toEqual([]);
  });

  it("is a single chain without gaps, valid at every moment, when two programs write concurrently", async () => {
    const place = await makePlace();
    const stores = [await place.open(), await place.open()];
    const writeOneByOne = async (store: Store, i: number): Promise<void> => {
      for (let n = 0; n < 100; n++) {
        await writeEntries(store, 1, `program-${i}`);
        if (n % 20 === 0) expect(await store.verifyAudit()).toMatchObject({ valid: true });
      }
    };
    await Promise.all(stores.map(writeOneByOne));

    const users = (await readEntryRows(place)).map(({ user_name }) => user_name);
    expect(users.sort()).toEqual([...Array(100).fill("program-0"), ...Array(100).fill("program-1")]);
    expect(await findGaps(place)).toEqual([]);
    for (const store of stores)
      expect(await store.verifyAudit()).toMatchObject({ valid: true, entries: 200 });
  });
});

describeStores("audit chain checkpoints", (makePlace) => {
  it("sign RFC 8785 JSON of entryHash, purpose, sequence and signedAt with ML-DSA-65", async () => {
    const store = await (await makePlace()).open();
    await writeEntries(store, 2);
    const { checkpoint } = await store.verifyAudit();
    if (checkpoint === undefined) throw new Error("no checkpoint");
    const { sequence, entryHash, signedAt } = checkpoint;
    const statement = { sequence, purpose: "audit checkpoint", signedAt: signedAt.toISOString(), entryHash };
    expect(new TextDecoder().decode(checkpointMessage(checkpoint))).toBe(canonicalize(statement));
    expect(isSigned(store, checkpoint)).toBe(true);
    expect(checkpoint.signature).toHaveLength(3309);
    expect(store.checkpointKey).toMatchObject({ algorithm: "ML-DSA-65" });
    expect(isSigned(store, { ...checkpoint, sequence: 1 })).toBe(false);
  });

  it("cover the head after a verification and after the store is closed, with the same key", async () => {
    const place = await makePlace();
    const store = await place.open();
    expect(await store.verifyAudit()).toMatchObject({ valid: true, checkpoint: undefined });
    await writeEntries(store, 3);
    expect((await store.verifyAudit()).checkpoint).toMatchObject({ sequence: 3 });
    await writeEntries(store, 1);
    await store.close();
    const last = (await readEntryRows(place)).at(-1);
    const checkpoints = await readCheckpoints(place);
    expect(checkpoints).toMatchObject([{ sequence: 4, entryHash: last?.entry_hash }]);
    const again = await place.open();
    expect(checkpoints.map((checkpoint) => isSigned(again, checkpoint))).toEqual([true]);
  });

  it("are signed within seconds of an entry, and not repeated for a head that already has one", async () => {
    const place = await makePlace();
    const store = await place.open();
    await writeEntries(store, 1);
    await expect.poll(() => readCheckpoints(place)).toMatchObject([{ sequence: 1 }]);
    const { checkpoint } = await store.verifyAudit();
    expect((await store.verifyAudit()).checkpoint?.signature).toEqual(checkpoint?.signature);
  });
});

describeStores("verifying a log of 20,000 entries", (makePlace) => {
  let place: Place;
  let store: Store;
  beforeAll(async () => {
    place = await makePlace(afterAll);
    store = await place.open({ atEnd: afterAll });
    for (const count of [10_000, 5000, 5000]) {
      await writeEntries(store, count);
      await store.verifyAudit();
    }
  }, 180_000);

  it("reports increasing progress up to the total", async () => {
    const shown: (readonly [number, number])[] = [];
    await store.verifyAudit({ onProgress: (checked, total) => shown.push([checked, total]) });
    expect(shown).toEqual(shown.toSorted(([a], [b]) => a - b));
    expect(new Set(shown.map(([checked]) => checked)).size).toBeGreaterThan(2);
    expect(shown.at(-1)).toEqual([20_000, 20_000]);
  });

  it("stops early when its signal aborts", async () => {
    const abort = new AbortController();
    const shown: number[] = [];
    const verification = store.verifyAudit({
      signal: abort.signal,
      onProgress(checked) {
        shown.push(checked);
        abort.abort();
      },
    });
    await expect(verification).rejects.toMatchObject({ name: "AbortError" });
    expect(shown).toHaveLength(1);
  });

  it("keeps the newest checkpoint of each 10,000 entries", async () => {
    const kept = await readCheckpoints(place);
    expect(kept.map(({ sequence }) => sequence)).toEqual([10_000, 20_000]);
    expect(kept.map((checkpoint) => isSigned(store, checkpoint))).toEqual([true, true]);
  });
});

describeStores("verifying while entries are written", (makePlace) => {
  it("describes the log as it was at the start", async () => {
    const store = await (await makePlace()).open();
    await writeEntries(store, 2500);
    const writing: Promise<void>[] = [];
    const found = await store.verifyAudit({ onProgress: () => writing.push(writeEntries(store, 10)) });
    await Promise.all(writing);
    expect(verdict(found)).toMatchObject({ valid: true, entries: 2500, checkpointAt: 2500 });
    const written = 10 * writing.length;
    expect(written).toBeGreaterThan(0);
    expect(verdict(await store.verifyAudit())).toMatchObject({ valid: true, entries: 2500 + written });
  });
});

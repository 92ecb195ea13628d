/** A verifiable log over a store's audit entries: what it signs, and what it refuses to sign. */
import { expect, it, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { RecordDamagedError, StoreFailureError } from "../../../src/database/store-error.ts";
import { hashLeaf } from "../../../src/merkle/hashes.ts";
import { verifyRecords } from "../../../src/records/verify-records.ts";
import { findMissing } from "../../../src/secrets/service-secrets.ts";
import type { Store } from "../../../src/store/store.ts";
import { copyLog, restoreLog } from "../../../test/audit/audit-log.ts";
import { writeEntries } from "../../../test/support/entries.ts";
import { treeHash } from "../../../test/support/naive-tree.ts";
import { describeStores, type Place } from "../../../test/support/on-both.ts";
import { outcomeOf } from "../../../test/support/refusal.ts";
import { addCosignature } from "../add-cosignature.ts";
import { createCosignatureStore } from "../cosignature-store.ts";
import type { Log } from "../log.ts";
import { formatNote } from "../note.ts";
import { tlogTables } from "../tables.ts";
import { verifyNote } from "../verify-note.ts";
import { verifyConsistency, verifyInclusion } from "../verify-proofs.ts";
import { openAuditLog, origin } from "./open-log.ts";
import { makeEd25519Witness } from "./witness.ts";

/** All leaves' data, straight from the database. */
async function readLeaves({ query }: Place): Promise<Uint8Array[]> {
  const rows = await query("select entry_hash from audit_entries order by sequence");
  return rows.map(({ entry_hash }) => Buffer.from(String(entry_hash), "hex"));
}

/** Requires a checkpoint of this size over the entries that the database has. */
async function expectWhole(place: Place, log: Log, size: number) {
  const checkpoint = await log.readCheckpoint();
  const root = treeHash(await readLeaves(place));
  expect([checkpoint.size, hex(checkpoint.root)]).toEqual([size, hex(root)]);
  return checkpoint;
}

const listSizes = async ({ query }: Place) =>
  (await query("select tree_size from tlog_checkpoints order by tree_size")).map((row) => row.tree_size);
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const corrupt = expect.objectContaining({ code: "CORRUPT" });

describeStores("a log", (makePlace) => {
  async function open(): Promise<{ place: Place; store: Store; log: Log }> {
    const place = await makePlace();
    const store = await place.open();
    return { place, store, log: await openAuditLog(store) };
  }

  it("signs the RFC 6962 root of all entries with three keys", async () => {
    const { place, store, log } = await open();
    await expectWhole(place, log, 0);
    await writeEntries(store, 300);
    const { root, note } = await expectWhole(place, log, 300);
    expect(note.text).toBe(`${origin}\n300\n${Buffer.from(root).toString("base64")}\n`);
    const provider = await createCryptoProvider("openssl");
    onTestFinished(() => provider.close());
    for (const key of log.keys)
      expect(await verifyNote(provider, note, key)).toMatchObject({ keyName: origin });
    expect(log.keys.map(({ type }) => type)).toEqual(["Ed25519", "ML-DSA-44 cosignature", "ML-DSA-65"]);
  });

  it("proves each entry and each earlier size while it grows across tile boundaries", async () => {
    const { place, store, log } = await open();
    const roots = new Map<number, Uint8Array>();
    for (const added of [1, 254, 1, 1, 255, 88]) {
      await writeEntries(store, added);
      const { size: to, root: toRoot } = await log.readCheckpoint();
      for (const [from, fromRoot] of roots) {
        const hashes = await log.proveConsistency(from, to);
        expect(verifyConsistency({ from, to, fromRoot, toRoot, hashes })).toBe(true);
      }
      roots.set(to, toRoot);
    }
    const leaves = await readLeaves(place);
    for (const [size, root] of roots)
      for (const index of [0, Math.floor(size / 2), size - 1]) {
        const leafHash = hashLeaf(leaves[index] ?? new Uint8Array());
        const hashes = await log.proveInclusion(index, size);
        expect(verifyInclusion({ index, size, leafHash, hashes, root })).toBe(true);
      }
    expect([...roots.keys()]).toEqual([1, 255, 256, 257, 512, 600]);
  });

  it("catches up with entries that were written before the log existed, also after a crash on the way", async () => {
    const place = await makePlace();
    const earlier = await place.open();
    await writeEntries(earlier, 9000);
    await earlier.close();
    const store = await place.open();
    await expectWhole(place, await openAuditLog(store), 9000);
    expect(await place.query("select * from tlog_hashes")).toHaveLength(Math.floor(9000 / 256));
    await place.query("delete from tlog_hashes where hash_index > 3");
    await place.query("delete from tlog_checkpoints");
    await expectWhole(place, await openAuditLog(store), 9000);
  });

  it("is shared by several programs: each size has one checkpoint, and all have the same hashes", async () => {
    const place = await makePlace();
    const stores = await Promise.all([1, 2, 3].map(() => place.open()));
    const logs = await Promise.all(stores.map((store) => openAuditLog(store)));
    const keys = logs.map(({ keys }) => keys.map(({ publicKey }) => hex(publicKey)).join());
    expect(new Set(keys).size).toBe(1);
    for (const _ of [1, 2, 3, 4]) {
      await Promise.all(stores.map((store) => writeEntries(store, 100)));
      const found = await Promise.all(logs.map((log) => log.readCheckpoint()));
      const bySize = new Map(found.map(({ size, note }) => [size, note.text]));
      for (const { size, note } of found) expect(note.text).toBe(bySize.get(size));
    }
    await expectWhole(place, logs[0] as Log, 1200);
  });

  it("signs once per interval for all callers", async () => {
    const place = await makePlace();
    const store = await place.open();
    let nowMs = 1_900_000_000_000;
    const log = await openAuditLog(store, { now: () => new Date(nowMs) });
    const sizes = [];
    for (const _ of [1, 2, 3]) {
      await writeEntries(store, 1);
      const found = await Promise.all(Array.from({ length: 20 }, () => log.readCheckpoint()));
      sizes.push(...new Set(found.map(({ size }) => size)));
    }
    expect(sizes).toEqual([1, 1, 1]);
    nowMs += 1000;
    expect((await log.readCheckpoint()).size).toBe(3);
    expect(await listSizes(place)).toEqual([1, 3]);
  });

  it("signs what was written just before it closes", async () => {
    const { place, store, log } = await open();
    await writeEntries(store, 3);
    await log.close();
    expect(await listSizes(place)).toEqual([3]);
  });

  it("signs again under a new origin, and then accepts no cosignature for the former checkpoint", async () => {
    const { store, log } = await open();
    await writeEntries(store, 3);
    const { note, root } = await log.readCheckpoint();
    const witness = makeEd25519Witness("witness.example");
    const cosignatures = createCosignatureStore(store, log.name, [witness.key]);
    const other = await openAuditLog(store, { origin: "other.example/audit" });
    const write = async (work: Parameters<typeof store.write>[0]) => {
      expect(await other.readCheckpoint()).toMatchObject({ size: 3, root, origin: "other.example/audit" });
      return store.write(work);
    };
    const deps = { witnesses: [witness.key], now: () => new Date(), store: { write } };
    const cosigned = formatNote({ text: note.text, signatures: [await witness.sign(note.text, new Date())] });
    const added = addCosignature(deps as never, { ...log, cosignatures }, Buffer.from(cosigned));
    expect(await outcomeOf(added)).toBe("CHECKPOINT_NOT_FOUND");
    expect(await cosignatures.list(3)).toEqual([]);
  });

  it("does not show a cosignature that was changed in the store, and a verification names it", async () => {
    const { place, store, log } = await open();
    await writeEntries(store, 3);
    const { note } = await log.readCheckpoint();
    const { key, sign } = makeEd25519Witness("witness.example");
    const cosignatures = createCosignatureStore(store, log.name, [key]);
    const given = await sign(note.text, new Date());
    await store.write(({ db }) => cosignatures.add(db, 3, { ...given, key, timestamp: 1 }));
    const [{ record_tag: tag } = {}] = await place.query("select * from tlog_cosignatures");
    // Never changes, because the tag is stored.
    const fields = ["tlog_cosignatures", "audit", 3, "witness.example", given.keyId, given.signature];
    expect(store.isTagged(fields, String(tag))).toBe(true);
    expect(await cosignatures.list(3)).toHaveLength(1);
    await place.query("update tlog_cosignatures set tree_size = 2");
    expect(await cosignatures.list(2)).toEqual([]);
    expect((await verifyRecords(store, tlogTables.records ?? [])).damaged).toEqual([
      "cosignature by witness.example of the log audit with 2 entries",
    ]);
  });

  it("keeps the newest 64 checkpoints, and the last one per 10,000 entries", async () => {
    const { place, store, log } = await open();
    for (let i = 0; i < 70; i++) {
      await writeEntries(store, i === 2 ? 10_000 : 1);
      await log.readCheckpoint();
    }
    const sizes = await listSizes(place);
    expect([sizes.length, ...sizes.slice(0, 2)]).toEqual([65, 2, 10_006]);
  });
});

describeStores("a log whose database was modified", (makePlace) => {
  async function makeLog() {
    const place = await makePlace();
    const writer = await place.open();
    await writeEntries(writer, 600);
    const { root } = await expectWhole(place, await openAuditLog(writer), 600);
    // Reopen the log, so that nothing is cached, as after a restart.
    const store = await place.open();
    return { place, store, writer, root, log: await openAuditLog(store) };
  }
  const changeHash = (sequence: number) =>
    `update audit_entries set entry_hash = '${"0".repeat(64)}' where sequence = ${sequence}`;
  const firstHash = "(select hash from tlog_hashes where hash_index = 0)";

  it.each([
    ["the hash of a recent entry", changeHash(590)],
    ["the content of a recent entry", "update audit_entries set details = 'x' where sequence = 590"],
    ["a missing recent entry", "delete from audit_entries where sequence = 590"],
    ["a hash of the tree", `update tlog_hashes set hash = ${firstHash} where hash_index = 1`],
    ["a missing first hash", "delete from tlog_hashes where hash_index = 0"],
    ["the newest checkpoint's root", "update tlog_checkpoints set tree_size = 599"],
    ["the newest checkpoint's note", "update tlog_checkpoints set note = note || 'x'"],
  ])("in %s signs nothing more and proves nothing false", async (_, change) => {
    const { place, writer, log, root } = await makeLog();
    const leafHash = hashLeaf((await readLeaves(place))[6] ?? new Uint8Array());
    await place.query(change);
    await writeEntries(writer, 100);
    const damage = await log.readCheckpoint().catch((error: unknown) => error);
    expect([RecordDamagedError, StoreFailureError].some((kind) => damage instanceof kind)).toBe(true);
    const hashes = await log.proveInclusion(6, 600).catch(() => undefined);
    const proof = { index: 6, size: 600, leafHash, root };
    expect(hashes === undefined || verifyInclusion({ ...proof, hashes })).toBe(true);
  });

  it("in the hash of an entry in a full tile serves no proof, tile or bundle that contains it", async () => {
    const { place, log } = await makeLog();
    const tile = { kind: "entries", level: 0, index: 0, width: 256 } as const;
    expect(await log.readTile(tile)).toHaveLength(256 * 34);
    await place.query(changeHash(7));
    await expect(log.readTile(tile)).rejects.toEqual(corrupt);
    const reopened = await openAuditLog(await place.open());
    await expect(reopened.proveInclusion(6, 600)).rejects.toThrow(/audit entry 7/);
    await expect(reopened.readTile({ ...tile, kind: "hashes" })).rejects.toThrow(/audit entry 7/);
  });

  it.each([
    ["without checkpoints", "delete from tlog_checkpoints"],
    ["without its newest checkpoint", "delete from tlog_checkpoints where tree_size = 11"],
  ])("back to an earlier day, %s, signs nothing more while it runs", async (_what, change) => {
    const place = await makePlace();
    const store = await place.open();
    const log = await openAuditLog(store);
    for (const entries of [10, 1]) {
      await writeEntries(store, entries);
      await log.readCheckpoint();
    }
    await place.query(change);
    await writeEntries(store, 1);
    await expect(log.readCheckpoint()).rejects.toEqual(corrupt);
  });

  it("to a diverged older log signs nothing that contradicts its checkpoint", async () => {
    const place = await makePlace();
    const first = await place.open();
    await writeEntries(first, 200);
    const copy = await copyLog(place);
    await writeEntries(first, 100);
    const log = await openAuditLog(first);
    expect((await log.readCheckpoint()).size).toBe(300);
    await log.close();
    await first.close();
    await restoreLog(place, copy);
    // The stored hashes would reveal it too.
    await place.query("delete from tlog_hashes");
    const second = await place.open();
    await writeEntries(second, 250, "bob");
    await expect((await openAuditLog(second)).readCheckpoint()).rejects.toEqual(corrupt);
  });

  it("to lack the keys that signed its checkpoints creates no new keys", async () => {
    const { place, store } = await makeLog();
    await place.query("delete from sealed_secrets where identity = 'tlog/audit/ml-dsa-44'");
    await expect(openAuditLog(store)).rejects.toThrow(/ml-dsa-44 key of the log audit/);
    const missing = (tlogTables.serviceSecrets ?? []).map((group) => findMissing(store.reader, group));
    expect((await Promise.all(missing)).flat()).toMatchObject([{ identity: "tlog/audit/ml-dsa-44" }]);
  });
});

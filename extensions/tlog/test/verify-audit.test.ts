/** Verification of a log: its stored tree, and where the verification of a long log continues. */
import { beforeAll, describe, expect, it } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { endAfterAll } from "../../../test/support/at-end.ts";
import { writeEntries } from "../../../test/support/entries.ts";
import { copySqlitePlace, makeSqlitePlace } from "../../../test/support/on-both.ts";
import { createAuditSource } from "../source.ts";
import { verifyAudit } from "../verify-audit.ts";
import { verifyTree } from "../verify-tree.ts";
import { makeFilledStore } from "./open-log.ts";

const provider = await createCryptoProvider("openssl");
const verifiedAt = new Date("2030-01-31T12:00:00Z");

/** The stores that the tests copy. */
let [stored, verified] = ["", ""];
const atEnd = endAfterAll();
beforeAll(async () => {
  stored = await makeFilledStore(atEnd, async (store, log) => {
    for (const added of [300, 300, 100]) {
      await writeEntries(store, added);
      await log.readCheckpoint();
    }
  });
  verified = await makeFilledStore(atEnd, async (store, log) => {
    await writeEntries(store, 700);
    await log.readCheckpoint();
    await verifyAudit(store, provider, { now: () => verifiedAt });
    await writeEntries(store, 100);
    await log.readCheckpoint();
  });
});

describe("a stored tree", () => {
  /** 700 entries, and checkpoints at sizes 300, 600 and 700. */
  async function copyStore() {
    const place = await copySqlitePlace(stored);
    const store = await place.open();
    const verify = () => verifyTree({ store, provider, source: createAuditSource(store) });
    return { place, store, verify };
  }

  it("agrees with the entries if it is intact, even with entries after its last checkpoint", async () => {
    const { store, verify } = await copyStore();
    const intact = { log: "audit", hashes: 2, checkpoints: 3, fault: undefined };
    expect(await verify()).toMatchObject(intact);
    await writeEntries(store, 600);
    expect(await verify()).toMatchObject(intact);
    expect(await verifyAudit(store, provider)).toMatchObject({ valid: true, entries: 1300 });
  });

  const changeEntry = `update audit_entries set entry_hash = '${"0".repeat(64)}' where sequence = 5`;
  const firstHash = "(select hash from tlog_hashes where hash_index = 0)";
  const firstNote = "(select note from tlog_checkpoints where tree_size = 300)";
  const setHash = (change: string) => `update tlog_hashes set ${change} where hash_index = 1`;
  const setCheckpoint = (size: number, change: string) =>
    `update tlog_checkpoints set ${change} where tree_size = ${size}`;
  const second = "hash 1 of level 1";
  it.each([
    ["an entry", changeEntry, 0, /checkpoint of size 300|hash 0 of level 1/],
    ["a hash", setHash(`hash = ${firstHash}`), 256, `${second} .* changed`],
    ["a missing hash", "delete from tlog_hashes where hash_index = 1", 256, `${second} .* is missing`],
    ["a hash's position", setHash("hash_index = 9"), 256, second],
    ["a checkpoint's root", setCheckpoint(600, `root = ${firstHash}`), 599, /size 600 was changed/],
    ["a checkpoint's note", setCheckpoint(600, `note = ${firstNote}`), 599, /size 600 was changed/],
    ["a checkpoint's size", setCheckpoint(700, "tree_size = 699"), 698, /size 699 was changed/],
    ["a checkpoint beyond the end", setCheckpoint(700, "tree_size = 701"), 700, /shorter than .* 701/],
  ])("names the change and the entry if %s was modified", async (_, change, leaf, reason) => {
    const { place, verify } = await copyStore();
    await place.query(change);
    expect((await verify()).fault).toMatchObject({ leaf, reason: expect.stringMatching(reason) });
  });
});

describe("verifying a log that is longer than the limit", () => {
  /** A log with 700 verified entries and 100 newer ones. */
  async function makeLongLog() {
    const place = await copySqlitePlace(verified);
    const store = await place.open();
    const verify = (wholeUpTo = 0) => verifyAudit(store, provider, { wholeUpTo });
    return { place, store, verify };
  }

  it("continues after the last full tile of the earlier verification, and reports its time", async () => {
    const { store, verify } = await makeLongLog();
    const found = { valid: true, entries: 800, verifiedFrom: 513, continuedFrom: verifiedAt };
    expect(await verify()).toMatchObject(found);
    expect((await verify()).checkpoint).toMatchObject({ sequence: 800 });
    // It ended after entry 768.
    expect(await verify()).toMatchObject({ valid: true, entries: 800, verifiedFrom: 769 });
    await writeEntries(store, 1);
    expect(await verify()).toMatchObject({ valid: true, entries: 801, verifiedFrom: 769 });
    // Within the limit, it verifies all of them.
    expect(await verify(801)).toMatchObject({ valid: true, verifiedFrom: 1, continuedFrom: undefined });
  });

  it("does not read earlier entries again unless asked to verify everything", async () => {
    const { place, verify } = await makeLongLog();
    await place.query("update audit_entries set details = 'forged' where sequence = 5");
    expect(await verify()).toMatchObject({ valid: true, verifiedFrom: 513 });
    expect(await verify(800)).toMatchObject({ valid: false, firstBrokenSequence: 5, verifiedFrom: 1 });
  });

  const setEntry = (sequence: number, change: string) =>
    `update audit_entries set ${change} where sequence = ${sequence}`;
  it.each([
    [513, "an entry after the earlier end", setEntry(513, "details = ''")],
    [5, "a missing earlier entry", "delete from audit_entries where sequence = 5"],
    [512, "the entry's hash at the earlier end", setEntry(512, "entry_hash = entry_tag")],
    [513, "a missing hash of new entries", "delete from tlog_hashes where hash_index = 2 and level = 1"],
    [800, "the newest checkpoint's hash", "update audit_checkpoints set entry_hash = ''"],
  ])("names the first broken entry, %i, after a change to %s", async (broken, _, change) => {
    const { place, store, verify } = await makeLongLog();
    await store.verifyAudit();
    await place.query(change);
    expect(await verify()).toMatchObject({ valid: false, firstBrokenSequence: broken });
  });

  it.each([
    ["states a later entry", "update tlog_verified set sequence = 768"],
    ["states a different hash", "update tlog_verified set entry_hash = record_tag"],
    ["states a different time", "update tlog_verified set verified_at_ms = 1"],
    ["is missing", "delete from tlog_verified"],
  ])("verifies all entries if the earlier verification's record %s", async (_, change) => {
    const { place, verify } = await makeLongLog();
    await place.query(change);
    expect(await verify()).toMatchObject({ valid: true, verifiedFrom: 1 });
  });

  it("verifies all entries if the stored tree differs from the earlier verification's", async () => {
    const { place, verify } = await makeLongLog();
    await place.query("update tlog_hashes set record_tag = '' where hash_index = 0 and level = 1");
    expect(await verify()).toMatchObject({ valid: false, firstBrokenSequence: 1, verifiedFrom: 1 });
  });

  it("detects a restored older log by the earlier verification's record", async () => {
    const place = await makeSqlitePlace();
    const store = await place.open();
    await writeEntries(store, 256);
    await verifyAudit(store, provider);
    await store.close();
    for (const table of ["audit_entries", "audit_head", "audit_checkpoints"])
      await place.query(`delete from ${table}`);
    expect(await verifyAudit(await place.open(), provider)).toMatchObject({
      valid: false,
      firstBrokenSequence: 1,
      reason: "the entry is missing: an earlier verification read it",
    });
  });
});

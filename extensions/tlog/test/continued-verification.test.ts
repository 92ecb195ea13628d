/** Verifying a long log continues where an earlier verification ended, and says so. */
import { beforeAll, describe, expect, it } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { endAfterAll } from "../../../test/support/at-end.ts";
import { writeEntries } from "../../../test/support/entries.ts";
import { copySqlitePlace, makeSqlitePlace } from "../../../test/support/on-both.ts";
import { verifyAudit } from "../verify-audit.ts";
import { makeFilledStore } from "./open-log.ts";

const provider = await createCryptoProvider("openssl");
const verifiedAt = new Date("2030-01-31T12:00:00Z");

/** Where the log is that the tests copy. */
let directory: string;
const atEnd = endAfterAll();
beforeAll(async () => {
  directory = await makeFilledStore(atEnd, async (store, log) => {
    await writeEntries(store, 700);
    await log.readCheckpoint();
    await verifyAudit(store, provider, { now: () => verifiedAt });
    await writeEntries(store, 100);
    await log.readCheckpoint();
  });
});

/** A log with 700 verified entries and 100 newer ones. */
async function makeLongLog() {
  const place = await copySqlitePlace(directory);
  const store = await place.open();
  const verify = (wholeUpTo = 0) => verifyAudit(store, provider, { wholeUpTo });
  return { place, store, verify };
}

describe("verifying a log that is longer than the limit", () => {
  it("continues after the last full tile of the earlier verification, and reports its time", async () => {
    const { store, verify } = await makeLongLog();
    const found = { valid: true, entries: 800, verifiedFrom: 513, continuedFrom: verifiedAt };
    expect(await verify()).toMatchObject(found);
    expect((await verify()).checkpoint).toMatchObject({ sequence: 800 });
    // It ended after entry 768.
    expect(await verify()).toMatchObject({ valid: true, entries: 800, verifiedFrom: 769 });
    await writeEntries(store, 1);
    expect(await verify()).toMatchObject({ valid: true, entries: 801, verifiedFrom: 769 });
  });

  it("verifies all entries of a log within the limit", async () => {
    const { verify } = await makeLongLog();
    const whole = { valid: true, entries: 800, verifiedFrom: 1, continuedFrom: undefined };
    expect(await verify(800)).toMatchObject(whole);
  });

  it("does not read earlier entries again unless asked to verify everything", async () => {
    const { place, verify } = await makeLongLog();
    await place.query("update audit_entries set details = 'forged' where sequence = 5");
    expect(await verify()).toMatchObject({ valid: true, verifiedFrom: 513 });
    expect(await verify(800)).toMatchObject({ valid: false, firstBrokenSequence: 5, verifiedFrom: 1 });
  });

  it.each([
    [
      "an entry after the earlier end was modified",
      "update audit_entries set details = '' where sequence = 513",
      513,
    ],
    ["an earlier entry is missing", "delete from audit_entries where sequence = 5", 5],
    [
      "the entry at the earlier end has a different hash",
      "update audit_entries set entry_hash = entry_tag where sequence = 512",
      512,
    ],
    [
      "a stored hash of the new entries is missing",
      "delete from tlog_hashes where hash_index = 2 and level = 1",
      513,
    ],
    ["the newest checkpoint states a different hash", "update audit_checkpoints set entry_hash = ''", 800],
  ])("names the first broken entry if %s", async (_, change, broken) => {
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
    const again = await place.open();
    expect(await verifyAudit(again, provider)).toMatchObject({
      valid: false,
      firstBrokenSequence: 1,
      reason: "the entry is missing: an earlier verification read it",
    });
  });
});

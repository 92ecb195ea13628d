/** Verification of the stored tree names the first hash or checkpoint that contradicts the entries. */
import { beforeAll, describe, expect, it } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { endAfterAll } from "../../../test/support/at-end.ts";
import { writeEntries } from "../../../test/support/entries.ts";
import { copySqlitePlace } from "../../../test/support/on-both.ts";
import { createAuditSource } from "../source.ts";
import { verifyAudit } from "../verify-audit.ts";
import { verifyTree } from "../verify-tree.ts";
import { makeFilledStore } from "./open-log.ts";

const provider = await createCryptoProvider("openssl");

/** Where the store is that the tests copy: it has 700 entries, and checkpoints at sizes 300, 600 and 700. */
let directory: string;
const atEnd = endAfterAll();
beforeAll(async () => {
  directory = await makeFilledStore(atEnd, async (store, log) => {
    for (const added of [300, 300, 100]) {
      await writeEntries(store, added);
      await log.readCheckpoint();
    }
  });
});

async function copyStore() {
  const place = await copySqlitePlace(directory);
  const store = await place.open();
  const verify = () => verifyTree({ store, provider, source: createAuditSource(store) });
  return { place, store, verify };
}

const zeros = "0".repeat(64);

describe("a stored tree", () => {
  it("agrees with the entries if it is intact, even with entries after its last checkpoint", async () => {
    const { store, verify } = await copyStore();
    expect(await verify()).toMatchObject({ log: "audit", hashes: 2, checkpoints: 3, fault: undefined });
    await writeEntries(store, 600);
    expect(await verify()).toMatchObject({ log: "audit", hashes: 2, checkpoints: 3, fault: undefined });
    expect(await verifyAudit(store, provider)).toMatchObject({ valid: true, entries: 1300 });
  });

  it.each([
    [
      "an entry",
      `update audit_entries set entry_hash = '${zeros}' where sequence = 5`,
      0,
      /checkpoint of size 300|hash 0 of level 1/,
    ],
    [
      "a hash",
      "update tlog_hashes set hash = entry.h from (select hash as h from tlog_hashes where hash_index = 0) as entry where hash_index = 1",
      256,
      /hash 1 of level 1 .* was changed/,
    ],
    [
      "a missing hash",
      "delete from tlog_hashes where hash_index = 1",
      256,
      /hash 1 of level 1 .* is missing/,
    ],
    [
      "the position of a hash",
      "update tlog_hashes set hash_index = 9 where hash_index = 1",
      256,
      /hash 1 of level 1/,
    ],
    [
      "a checkpoint's root",
      "update tlog_checkpoints set root = (select hash from tlog_hashes where hash_index = 0) where tree_size = 600",
      599,
      /checkpoint of size 600 was changed/,
    ],
    [
      "a checkpoint's note",
      "update tlog_checkpoints set note = (select note from tlog_checkpoints where tree_size = 300) where tree_size = 600",
      599,
      /checkpoint of size 600 was changed/,
    ],
    [
      "a checkpoint's size",
      "update tlog_checkpoints set tree_size = 699 where tree_size = 700",
      698,
      /checkpoint of size 699 was changed/,
    ],
    [
      "a checkpoint beyond the end",
      "update tlog_checkpoints set tree_size = 701 where tree_size = 700",
      700,
      /shorter than its checkpoint of size 701/,
    ],
  ])("names the change and the entry if %s was modified", async (_, change, leaf, reason) => {
    const { place, verify } = await copyStore();
    await place.query(change);
    const { fault } = await verify();
    expect(fault?.reason).toMatch(reason);
    expect(fault?.leaf).toBe(leaf);
  });

  it("with a wrong hash makes the audit log invalid from the first entry below the hash", async () => {
    const { place, store } = await copyStore();
    await place.query("delete from tlog_hashes where hash_index = 1");
    expect(await store.verifyAudit()).toMatchObject({ valid: true });
    expect(await verifyAudit(store, provider)).toMatchObject({
      valid: false,
      firstBrokenSequence: 257,
      reason: "the hash 1 of level 1 of the log audit is missing",
    });
  });
});

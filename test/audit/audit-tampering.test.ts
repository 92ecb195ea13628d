/**
 * Verification of a log that was changed directly in the database.
 *
 * Each test's log has 8 entries and a checkpoint at entry 5, as it would be within a second of its last
 * entries.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { AuditEntriesTable } from "../../src/audit/tables.ts";
import type { SignedCheckpoint } from "../../src/audit/verification.ts";
import { StoreFailureError } from "../../src/database/store-error.ts";
import type { Store } from "../../src/store/store.ts";
import { writeEntries } from "../support/entries.ts";
import { describeStores, type Place } from "../support/on-both.ts";
import { storageError } from "../support/storage-error.ts";
import {
  type AuditCopy,
  copyLog,
  hashOfRow,
  insertEntry,
  readEntryRows,
  restoreLog,
  verdict,
} from "./audit-log.ts";

/** How a write fails if the end of the log was changed. */
const corrupt = { constructor: StoreFailureError, code: "CORRUPT" };

const valid = { valid: true, entries: 8, firstBrokenSequence: undefined };

/** The verification result if the first broken entry is covered by the checkpoint. */
const brokenAt = (firstBrokenSequence: number) => ({
  valid: false,
  firstBrokenSequence,
  checkpointAt: undefined,
});
/** The verification result if the first broken entry comes after the checkpoint. */
const brokenAfterCheckpoint = (firstBrokenSequence: number) => ({
  ...brokenAt(firstBrokenSequence),
  checkpointAt: 5,
});

/** A different value for each column of an entry except its sequence. */
const edits: readonly (readonly [column: keyof AuditEntriesTable, value: string | number])[] = [
  ["key_id", "key-4"],
  ["operation", "VERIFY"],
  ["user_name", "eve"],
  ["occurred_at_ms", 1_000_000_000_000],
  ["outcome", "REFUSED"],
  ["details", "bytes=4"],
  ["client_address", "192.0.2.1"],
  ["request_id", "call-4"],
  ["entry_hash", "ab".repeat(32)],
  ["entry_tag", "ab".repeat(32)],
];

/** Edits that change the hash. */
const hashedEdits = edits.filter(([column]) => !["entry_hash", "entry_tag"].includes(column));

describeStores("verifying a tampered log", (makePlace) => {
  let place: Place;
  let store: Store;
  /** The log after its first 5 entries. */
  let older: AuditCopy;
  /** The log after all 8 entries, with the checkpoint signed then. */
  let newer: AuditCopy;
  let outside: SignedCheckpoint;

  beforeAll(async () => {
    place = await makePlace(afterAll);
    const writing = await place.open({ atEnd: afterAll });
    await writeEntries(writing, 5);
    await writing.verifyAudit();
    older = await copyLog(place);
    await writeEntries(writing, 3);
    const { checkpoint } = await writing.verifyAudit();
    if (checkpoint === undefined) throw new Error("no checkpoint");
    outside = checkpoint;
    await writing.close();
    newer = await copyLog(place);
  }, 180_000);

  beforeEach(async () => {
    await restoreLog(place, { ...newer, audit_checkpoints: older.audit_checkpoints });
    await open();
  });

  afterEach(() => close());

  const endings: (() => unknown)[] = [];
  const open = async (): Promise<void> => {
    store = await place.open({ atEnd: (end) => endings.unshift(end) });
  };
  const close = async (): Promise<void> => {
    for (const end of endings.splice(0)) await end();
  };
  /** Reopens the store, so that it has no memory of earlier ends. */
  const reopen = async (): Promise<void> => {
    await close();
    await open();
  };
  /** Writes entries elsewhere, for a different history. */
  const writeElsewhere = async (count: number): Promise<void> => {
    const other = await place.open();
    await writeEntries(other, count, "eve");
    await other.close();
  };

  const verifyLog = async () => verdict(await store.verifyAudit());

  /** Changes columns of an entry. */
  const edit = async (sequence: number, changes: Partial<AuditEntriesTable>): Promise<void> => {
    const columns = Object.keys(changes).map((column, i) => `${column} = $${i + 2}`);
    const text = `update audit_entries set ${columns.join()} where sequence = $1`;
    await place.query(text, [sequence, ...Object.values(changes)]);
  };

  /** Recomputes entry hashes, as far as that is possible without a key. */
  const rehash = async (first: number, last: number): Promise<void> => {
    const rows = await readEntryRows(place);
    let previous = rows[first - 2]?.entry_hash ?? "0".repeat(64);
    for (const row of rows.slice(first - 1, last)) {
      previous = hashOfRow(row, previous);
      await edit(row.sequence, { entry_hash: previous });
    }
  };

  const remove = (where: string) => place.query(`delete from audit_entries where ${where}`);

  it("is valid before tampering", async () => {
    expect(await verifyLog()).toEqual({ ...valid, checkpointAt: 8 });
  });

  describe("an edited entry", () => {
    for (const [column, value] of edits) {
      it(`is reported if its ${column} was changed`, async () => {
        await edit(3, { [column]: value });
        expect(await verifyLog()).toEqual({ ...brokenAt(3), entries: 8 });
      });
    }

    it.each(["owner", "key_name"])(
      "is reported if its %s was changed, which its tag covers",
      async (column) => {
        await store.write(async ({ audit }) => {
          const entry = {
            keyId: "key-1",
            operation: "SIGN",
            user: "ada",
            outcome: "OK",
            details: "",
          } as const;
          audit({ ...entry, owner: "ada", keyName: "till" });
        });
        await edit(9, { [column]: "other" });
        expect(await verifyLog()).toMatchObject(brokenAfterCheckpoint(9));
      },
    );

    it.each(["owner", "key_name"])("is reported if it had no %s and got one", async (column) => {
      await edit(3, { [column]: "other" });
      expect(await verifyLog()).toMatchObject(brokenAt(3));
    });

    it("is reported if its sequence was changed to one beyond the end", async () => {
      await edit(3, { sequence: 9 });
      expect(await verifyLog()).toMatchObject(brokenAt(3));
    });

    it("is reported if its occurred_at_ms is not a valid date", async () => {
      await edit(3, { occurred_at_ms: 8_640_000_000_000_001 });
      expect(await verifyLog()).toMatchObject(brokenAt(3));
    });

    for (const [column, value] of hashedEdits) {
      it(`is reported if its ${column} was changed and its hash recomputed`, async () => {
        await edit(3, { [column]: value });
        await rehash(3, 3);
        expect(await verifyLog()).toMatchObject(brokenAt(3));
      });
    }

    it("is reported if the hashes of the rest of the chain were recomputed too", async () => {
      await edit(3, { user_name: "eve" });
      await rehash(3, 8);
      const last = (await readEntryRows(place)).at(-1);
      await place.query("update audit_head set entry_hash = $1", [last?.entry_hash ?? ""]);
      expect(await verifyLog()).toMatchObject(brokenAt(3));
    });

    it("is reported if it is the last one, after the checkpoint", async () => {
      await edit(8, { details: "" });
      expect(await verifyLog()).toMatchObject(brokenAfterCheckpoint(8));
    });

    it("is reported if it is the first of several", async () => {
      await edit(7, { user_name: "eve" });
      await edit(2, { user_name: "eve" });
      expect(await verifyLog()).toMatchObject(brokenAt(2));
    });
  });

  describe("a removed entry", () => {
    it("is reported if it was in the middle", async () => {
      await remove("sequence = 4");
      expect(await verifyLog()).toEqual({ ...brokenAt(4), entries: 7 });
    });

    it("is reported if it was the first", async () => {
      await remove("sequence = 1");
      expect(await verifyLog()).toEqual({ ...brokenAt(1), entries: 7 });
    });

    it("is reported if it was the last", async () => {
      await remove("sequence = 8");
      expect(await verifyLog()).toEqual({ ...brokenAfterCheckpoint(8), entries: 7 });
    });

    it("is reported if later entries were renumbered to close the gap", async () => {
      await remove("sequence = 6");
      await edit(7, { sequence: 6 });
      await edit(8, { sequence: 7 });
      await rehash(6, 7);
      expect(await verifyLog()).toMatchObject(brokenAfterCheckpoint(6));
    });

    it("is reported if a forged head denies its existence", async () => {
      const [, , , , , , seventh] = newer.audit_entries;
      await remove("sequence = 8");
      await place.query("update audit_head set sequence = 7, entry_hash = $1", [seventh?.entry_hash ?? ""]);
      expect(await verifyLog()).toMatchObject(brokenAfterCheckpoint(8));
    });

    it("is reported if an older head was restored, by the checkpoint that covers it", async () => {
      await restoreLog(place, { ...older, audit_checkpoints: newer.audit_checkpoints });
      expect(await verifyLog()).toEqual({ ...brokenAt(6), entries: 5 });
    });

    it("is reported if all entries and the head are missing but a checkpoint exists", async () => {
      await restoreLog(place, { audit_entries: [], audit_head: [] });
      expect(await verifyLog()).toEqual({ ...brokenAt(1), entries: 0 });
    });

    it("is reported if all entries are missing but the head exists", async () => {
      await restoreLog(place, { audit_entries: [], audit_checkpoints: [] });
      expect(await verifyLog()).toEqual({ ...brokenAt(1), entries: 0 });
    });
  });

  describe("a moved or added entry", () => {
    it("is reported if it was swapped with the next one", async () => {
      await edit(3, { sequence: 9 });
      await edit(4, { sequence: 3 });
      await edit(9, { sequence: 4 });
      expect(await verifyLog()).toEqual({ ...brokenAt(3), entries: 8 });
    });

    it("is reported if it was copied beyond the end", async () => {
      const last = newer.audit_entries.at(-1) as AuditEntriesTable;
      await insertEntry(place, { ...last, sequence: 9 });
      expect(await verifyLog()).toEqual({ ...brokenAfterCheckpoint(9), entries: 9 });
    });

    it("is reported if it continues the chain beyond the end with a correct hash", async () => {
      const last = newer.audit_entries.at(-1) as AuditEntriesTable;
      await insertEntry(place, { ...last, sequence: 9 });
      await rehash(9, 9);
      expect(await verifyLog()).toEqual({ ...brokenAfterCheckpoint(9), entries: 9 });
    });

    it("is reported if it is beyond the end stated by an older head", async () => {
      await restoreLog(place, { audit_head: older.audit_head });
      expect(await verifyLog()).toEqual({ ...brokenAfterCheckpoint(6), entries: 8 });
    });

    it("is detected if it was inserted before the first one", async () => {
      const [first] = newer.audit_entries as [AuditEntriesTable];
      await insertEntry(place, { ...first, sequence: 0, user_name: "eve" });
      expect(await verifyLog()).toMatchObject({ valid: false });
    });
  });

  describe("the head", () => {
    it.each(["made up", "put back"])("is not signed if it was %s since entries were written", async (how) => {
      const [, , , , , , seventh] = newer.audit_entries;
      await writeEntries(store, 1);
      await remove("sequence > 7");
      if (how === "put back") await restoreLog(place, { audit_head: older.audit_head });
      else
        await place.query("update audit_head set sequence = 7, entry_hash = $1", [seventh?.entry_hash ?? ""]);
      await close();
      expect((await copyLog(place)).audit_checkpoints.map(({ sequence }) => sequence)).toEqual([5]);
    });

    const changes = {
      sequence: "sequence = 7",
      entry_hash: `entry_hash = '${"ab".repeat(32)}'`,
      head_tag: `head_tag = '${"ab".repeat(32)}'`,
    };
    for (const [column, change] of Object.entries(changes)) {
      it(`leaves the entries after the last genuine one uncertain if its ${column} was changed, and blocks writes`, async () => {
        await place.query(`update audit_head set ${change}`);
        expect(await verifyLog()).toEqual({ ...brokenAfterCheckpoint(9), entries: 8 });
        await expect(writeEntries(store, 1)).rejects.toMatchObject(corrupt);
        expect(await readEntryRows(place)).toHaveLength(8);
      });
    }

    it("leaves the entries after the last genuine one uncertain if it was removed, and blocks writes", async () => {
      await restoreLog(place, { audit_head: [] });
      expect(await verifyLog()).toEqual({ ...brokenAfterCheckpoint(9), entries: 8 });
      await expect(writeEntries(store, 1)).rejects.toThrow();
      expect(await readEntryRows(place)).toEqual(newer.audit_entries);
    });

    it("makes writes fail with a damaged database if it was removed", async () => {
      await restoreLog(place, { audit_head: [] });
      await expect(writeEntries(store, 1)).rejects.toMatchObject(corrupt);
    });

    it("leaves those entries uncertain even if the checkpoints were removed with it", async () => {
      await restoreLog(place, { audit_head: [], audit_checkpoints: [] });
      expect(await verifyLog()).toEqual({ ...brokenAt(9), entries: 8 });
    });

    it("is detected if it belongs to a different history of the same length", async () => {
      await restoreLog(place, older);
      await writeElsewhere(3);
      const { audit_head } = await copyLog(place);
      await restoreLog(place, { ...newer, audit_head, audit_checkpoints: older.audit_checkpoints });
      expect(await verifyLog()).toMatchObject({ valid: false });
    });
  });

  describe("a checkpoint", () => {
    const changes = {
      entry_hash: `entry_hash = '${"ab".repeat(32)}'`,
      signed_at_ms: "signed_at_ms = signed_at_ms + 1",
      "signed_at_ms (to an invalid date)": "signed_at_ms = 8640000000000001",
    };
    for (const [column, change] of Object.entries(changes)) {
      it(`breaks the entry that it covers if its ${column} was changed`, async () => {
        await place.query(`update audit_checkpoints set ${change}`);
        expect(await verifyLog()).toEqual({ ...brokenAt(5), entries: 8 });
      });
    }

    const signatures = {
      "one bit of its signature was changed": (signature: Uint8Array) =>
        signature.map((byte, i) => (i === 1000 ? byte ^ 1 : byte)),
      "its signature was truncated": (signature: Uint8Array) => signature.slice(0, 100),
      "its signature was emptied": () => new Uint8Array(),
    };
    for (const [what, change] of Object.entries(signatures)) {
      it(`breaks the entry that it covers if ${what}`, async () => {
        const [checkpoint] = older.audit_checkpoints;
        const signature = change(Uint8Array.from(checkpoint?.signature ?? []));
        await place.query("update audit_checkpoints set signature = $1", [signature]);
        expect(await verifyLog()).toEqual({ ...brokenAt(5), entries: 8 });
      });
    }

    it("breaks the entry to which it was moved", async () => {
      await place.query("update audit_checkpoints set sequence = 4");
      expect(await verifyLog()).toEqual({ ...brokenAt(4), entries: 8 });
    });

    it("is not missed in a log that lost it, until a new one is signed", async () => {
      await restoreLog(place, { audit_checkpoints: [] });
      expect(await verifyLog()).toEqual({ ...valid, checkpointAt: 8 });
    });
  });

  describe("an older copy of the whole log, restored under a store that saw the newer one", () => {
    it("is detected: the first entry after it is missing", async () => {
      await restoreLog(place, older);
      expect(await verifyLog()).toEqual({ ...brokenAfterCheckpoint(6), entries: 5 });
    });

    it("is detected if it is empty", async () => {
      await restoreLog(place, { audit_entries: [], audit_head: [], audit_checkpoints: [] });
      expect(await verifyLog()).toEqual({ ...brokenAt(1), entries: 0 });
    });

    it("is detected if it continued differently", async () => {
      await restoreLog(place, older);
      await writeElsewhere(4);
      expect(await verifyLog()).toMatchObject({ valid: false, firstBrokenSequence: 8 });
    });

    it("accepts no more entries", async () => {
      await restoreLog(place, older);
      await expect(writeEntries(store, 1)).rejects.toMatchObject(corrupt);
      expect(await readEntryRows(place)).toEqual(older.audit_entries);
    });

    it("accepts no more entries if it is empty", async () => {
      await restoreLog(place, { audit_entries: [], audit_head: [], audit_checkpoints: [] });
      await expect(writeEntries(store, 1)).rejects.toMatchObject(corrupt);
      expect(await readEntryRows(place)).toEqual([]);
    });
  });

  describe("an older copy of the whole log, restored before a store is opened", () => {
    it("is valid by itself", async () => {
      await restoreLog(place, older);
      await reopen();
      expect(await verifyLog()).toEqual({ ...valid, entries: 5, checkpointAt: 5 });
    });

    it("is detected with an externally stored checkpoint: the first entry after it is missing", async () => {
      await restoreLog(place, older);
      await reopen();
      const found = verdict(await store.verifyAudit({ outside }));
      expect(found).toEqual({ ...brokenAfterCheckpoint(6), entries: 5 });
    });

    it("is detected with an externally stored checkpoint if it is empty", async () => {
      await restoreLog(place, { audit_entries: [], audit_head: [], audit_checkpoints: [] });
      await reopen();
      expect(await verifyLog()).toEqual({ ...valid, entries: 0, checkpointAt: undefined });
      expect(verdict(await store.verifyAudit({ outside }))).toEqual({ ...brokenAt(1), entries: 0 });
    });

    it("is detected with an externally stored checkpoint if other entries followed it", async () => {
      await restoreLog(place, older);
      await writeElsewhere(6);
      await reopen();
      expect(await verifyLog()).toEqual({ ...valid, entries: 11, checkpointAt: 11 });
      expect(verdict(await store.verifyAudit({ outside }))).toMatchObject(brokenAt(8));
    });
  });

  describe("an externally stored checkpoint", () => {
    it("matches the log that it was signed for, and a longer one", async () => {
      expect(verdict(await store.verifyAudit({ outside }))).toEqual({ ...valid, checkpointAt: 8 });
      await writeElsewhere(2);
      const found = verdict(await store.verifyAudit({ outside }));
      expect(found).toEqual({ ...valid, entries: 10, checkpointAt: 10 });
    });

    const forgeries: Readonly<Record<string, Partial<SignedCheckpoint>>> = {
      "whose hash was changed": { entryHash: "ab".repeat(32) },
      "whose time was changed": { signedAt: new Date(0) },
      "whose signature is all zeros": { signature: new Uint8Array(3309) },
      "whose signature has the wrong length": { signature: new Uint8Array(10) },
    };
    for (const [what, change] of Object.entries(forgeries)) {
      it(`${what} is rejected: it proves nothing about the log`, async () => {
        const verifying = store.verifyAudit({ outside: { ...outside, ...change } });
        await expect(verifying).rejects.toThrow(storageError(/not signed by this store, or was changed/));
      });
    }
  });
});

/**
 * Verification of a log that was changed directly in the database.
 *
 * Each test's log has 8 entries and a checkpoint at entry 5, as it would be within a second of its last
 * entries.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { AuditEntriesTable } from "../../src/audit/tables.ts";
import type { SignedCheckpoint } from "../../src/audit/verification.ts";
import { StoreFailureError } from "../../src/database/store-error.ts";
import type { Store } from "../../src/store/store.ts";
import { flipBit } from "../support/bytes.ts";
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

/** A log without anything. */
const empty: AuditCopy = { audit_entries: [], audit_head: [], audit_checkpoints: [] };

const valid = { valid: true, entries: 8, firstBrokenSequence: undefined };
/** The verification result of a whole log, which gets a checkpoint at its end. */
const intact = (entries: number) => ({ ...valid, entries, checkpointAt: entries || undefined });

/** The verification result if the first broken entry is covered by the checkpoint. */
const brokenAt = (firstBrokenSequence: number) => ({
  valid: false,
  firstBrokenSequence,
  checkpointAt: undefined,
});
/** The same of a log that still has all its entries. */
const brokenWhole = (firstBrokenSequence: number) => ({ ...brokenAt(firstBrokenSequence), entries: 8 });
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

/** The columns that the hash covers. */
const hashed = edits.filter(([column]) => !["entry_hash", "entry_tag"].includes(column));
/** One millisecond more than a date can have. */
const invalidTime = 8_640_000_000_000_001;
const wrongHash = `'${"ab".repeat(32)}'`;

/** A change to the database, and the verification result. */
type Tampering = readonly [what: string, tamper: () => Promise<unknown>, expected: object];

describeStores("verifying a tampered log", (makePlace) => {
  let place: Place;
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

  beforeEach(() => restoreLog(place, { ...newer, audit_checkpoints: older.audit_checkpoints }));

  /** Opens a store that has no memory of earlier ends. */
  const open = () => place.open();
  /** Writes entries elsewhere, for a different history. */
  const writeElsewhere = async (count: number): Promise<void> => {
    const other = await open();
    await writeEntries(other, count, "eve");
    await other.close();
  };
  const verifyLog = async (store: Store, options?: { outside: SignedCheckpoint }) =>
    verdict(await store.verifyAudit(options));

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
  const changeHead = (change: string, values: string[] = []) =>
    place.query(`update audit_head set ${change}`, values);
  const changeCheckpoint = (change: string) => place.query(`update audit_checkpoints set ${change}`);
  const endAtSeventh = () =>
    changeHead("sequence = 7, entry_hash = $1", [newer.audit_entries[6]?.entry_hash ?? ""]);
  const copyLast = (sequence: number) =>
    insertEntry(place, { ...(newer.audit_entries.at(-1) as AuditEntriesTable), sequence });
  const changeSignature = (change: (signature: Uint8Array) => Uint8Array) => {
    const signature = change(Uint8Array.from(older.audit_checkpoints[0]?.signature ?? []));
    return place.query("update audit_checkpoints set signature = $1", [signature]);
  };

  const editing = (column: string, value: string | number, isRehashed: boolean): Tampering => [
    `the ${column} of an entry was changed${isRehashed ? " and its hash recomputed" : ""}`,
    () => edit(3, { [column]: value }).then(() => (isRehashed ? rehash(3, 3) : undefined)),
    brokenWhole(3),
  ];

  const entries: readonly Tampering[] = [
    ["nothing was changed", async () => {}, { ...valid, checkpointAt: 8 }],
    ...edits.map(([column, value]) => editing(column, value, false)),
    ...hashed.map(([column, value]) => editing(column, value, true)),
    ...["owner", "key_name"].map((column) => editing(column, "other", false)),
    ["an entry was moved beyond the end", () => edit(3, { sequence: 9 }), brokenAt(3)],
    ["an entry's time is invalid", () => edit(3, { occurred_at_ms: invalidTime }), brokenAt(3)],
    [
      "an entry was changed and the hashes of the rest of the chain recomputed",
      async () => {
        await edit(3, { user_name: "eve" });
        await rehash(3, 8);
        await changeHead("entry_hash = $1", [(await readEntryRows(place)).at(-1)?.entry_hash ?? ""]);
      },
      brokenAt(3),
    ],
    ["the last entry was changed", () => edit(8, { details: "" }), brokenAfterCheckpoint(8)],
    [
      "several entries were changed",
      () => edit(7, { user_name: "eve" }).then(() => edit(2, { user_name: "eve" })),
      brokenAt(2),
    ],
    ["an entry in the middle was removed", () => remove("sequence = 4"), { ...brokenAt(4), entries: 7 }],
    ["the first entry was removed", () => remove("sequence = 1"), { ...brokenAt(1), entries: 7 }],
    ["the last entry was removed", () => remove("sequence = 8"), { ...brokenAfterCheckpoint(8), entries: 7 }],
    [
      "an entry was removed and later ones renumbered to close the gap",
      async () => {
        await remove("sequence = 6");
        await edit(7, { sequence: 6 });
        await edit(8, { sequence: 7 });
        await rehash(6, 7);
      },
      brokenAfterCheckpoint(6),
    ],
    [
      "the last entry was removed and a forged head denies its existence",
      () => remove("sequence = 8").then(endAtSeventh),
      brokenAfterCheckpoint(8),
    ],
    [
      "an older log was restored, but not the checkpoint that covers the newer one",
      () => restoreLog(place, { ...older, audit_checkpoints: newer.audit_checkpoints }),
      { ...brokenAt(6), entries: 5 },
    ],
    [
      "all entries and the head are missing but a checkpoint exists",
      () => restoreLog(place, { audit_entries: [], audit_head: [] }),
      { ...brokenAt(1), entries: 0 },
    ],
    [
      "all entries are missing but the head exists",
      () => restoreLog(place, { audit_entries: [], audit_checkpoints: [] }),
      { ...brokenAt(1), entries: 0 },
    ],
    [
      "an entry was swapped with the next one",
      async () => {
        for (const [from, to] of [
          [3, 9],
          [4, 3],
          [9, 4],
        ] as const)
          await edit(from, { sequence: to });
      },
      brokenWhole(3),
    ],
    ["an entry was copied beyond the end", () => copyLast(9), { ...brokenAfterCheckpoint(9), entries: 9 }],
    [
      "an entry was copied beyond the end, with a correct hash",
      () => copyLast(9).then(() => rehash(9, 9)),
      { ...brokenAfterCheckpoint(9), entries: 9 },
    ],
    ["an entry was copied before the first one", () => copyLast(0), { valid: false }],
  ];

  /** The results for a whole log with another end, or another checkpoint. */
  const [afterEnd, beforeEnd] = [brokenAfterCheckpoint(9), brokenAfterCheckpoint(6)];
  const ends: readonly Tampering[] = [
    ["an older head was restored", () => restoreLog(place, { audit_head: older.audit_head }), beforeEnd],
    ...["sequence = 7", `entry_hash = ${wrongHash}`, `head_tag = ${wrongHash}`].map(
      (change): Tampering => [`the head was changed: ${change}`, () => changeHead(change), afterEnd],
    ),
    ["the head was removed", () => restoreLog(place, { audit_head: [] }), afterEnd],
    [
      "the head and the checkpoints were removed",
      () => restoreLog(place, { audit_head: [], audit_checkpoints: [] }),
      brokenWhole(9),
    ],
    [
      "the head belongs to a different history of the same length",
      async () => {
        await restoreLog(place, older);
        await writeElsewhere(3);
        const { audit_head } = await copyLog(place);
        await restoreLog(place, { ...newer, audit_head, audit_checkpoints: older.audit_checkpoints });
      },
      { valid: false },
    ],
    ...[`entry_hash = ${wrongHash}`, "signed_at_ms = signed_at_ms + 1", `signed_at_ms = ${invalidTime}`].map(
      (change): Tampering => [`a checkpoint got ${change}`, () => changeCheckpoint(change), brokenWhole(5)],
    ),
    ["a signature has another bit", () => changeSignature((old) => flipBit(old, 1000)), brokenWhole(5)],
    ["a signature was truncated", () => changeSignature((old) => old.slice(0, 100)), brokenWhole(5)],
    ["a signature was emptied", () => changeSignature(() => new Uint8Array()), brokenWhole(5)],
    ["a checkpoint was moved", () => changeCheckpoint("sequence = 4"), brokenWhole(4)],
    [
      "the checkpoints were removed, which a new one replaces",
      () => restoreLog(place, { audit_checkpoints: [] }),
      { ...valid, checkpointAt: 8 },
    ],
    ["an older copy was restored", () => restoreLog(place, older), { ...beforeEnd, entries: 5 }],
    ["an empty copy was restored", () => restoreLog(place, empty), { ...brokenAt(1), entries: 0 }],
    [
      "an older copy was restored and continued differently",
      () => restoreLog(place, older).then(() => writeElsewhere(4)),
      { valid: false, firstBrokenSequence: 8 },
    ],
  ];

  describe("finds the first broken entry", () => {
    /** A store that has seen the newer log. */
    let store: Store;
    beforeAll(async () => {
      await restoreLog(place, newer);
      store = await place.open({ atEnd: afterAll });
    });

    it.each([...entries, ...ends])("if %s", async (_what, tamper, expected) => {
      await tamper();
      expect(await verifyLog(store)).toMatchObject(expected);
    });

    const forgeries: Readonly<Record<string, Partial<SignedCheckpoint>>> = {
      hash: { entryHash: "ab".repeat(32) },
      time: { signedAt: new Date(0) },
      "signature to zeros": { signature: new Uint8Array(3309) },
      "signature to one of the wrong length": { signature: new Uint8Array(10) },
    };
    it.each(Object.entries(forgeries))(
      "and rejects an externally stored checkpoint with a changed %s: it proves nothing about the log",
      async (_what, change) => {
        const verifying = store.verifyAudit({ outside: { ...outside, ...change } });
        await expect(verifying).rejects.toThrow(
          storageError(/not signed by this store for this log, or was changed/),
        );
      },
    );
  });

  it.each(["owner", "key_name"] as const)(
    "finds an entry whose %s was changed, which its tag covers",
    async (column) => {
      const store = await open();
      const event = { keyId: "key-1", operation: "SIGN", user: "ada", outcome: "OK", details: "" } as const;
      await store.write(async ({ audit }) => audit({ ...event, owner: "ada", keyName: "till" }));
      await edit(9, { [column]: "other" });
      expect(await verifyLog(store)).toMatchObject(brokenAfterCheckpoint(9));
    },
  );

  it("says that an entry is missing, and not that the next one was changed", async () => {
    const store = await open();
    await remove("sequence = 4");
    expect((await store.verifyAudit()).reason).toBe("the entry is missing");
  });

  it.each<[string, () => Promise<unknown>]>([
    ["forged", endAtSeventh],
    ["restored", () => restoreLog(place, { audit_head: older.audit_head })],
  ])("does not sign a head that was %s since entries were written", async (_how, change) => {
    const store = await open();
    await writeEntries(store, 1);
    await remove("sequence > 7");
    await change();
    await store.close();
    expect((await copyLog(place)).audit_checkpoints.map(({ sequence }) => sequence)).toEqual([5]);
  });

  it.each<[string, () => Promise<unknown>]>([
    ["its head was changed", () => changeHead("sequence = 7")],
    ["its head was removed", () => restoreLog(place, { audit_head: [] })],
    ["an older copy was restored", () => restoreLog(place, older)],
    ["an empty copy was restored", () => restoreLog(place, empty)],
  ])("accepts no more entries once %s", async (_what, tamper) => {
    const store = await open();
    await tamper();
    const before = await readEntryRows(place);
    await expect(writeEntries(store, 1)).rejects.toMatchObject(corrupt);
    expect(await readEntryRows(place)).toEqual(before);
  });

  it.each<[string, () => Promise<unknown>, object, object]>([
    ["older", () => restoreLog(place, older), intact(5), { ...brokenAfterCheckpoint(6), entries: 5 }],
    ["empty", () => restoreLog(place, empty), intact(0), { ...brokenAt(1), entries: 0 }],
    [
      "older, and continued differently",
      () => restoreLog(place, older).then(() => writeElsewhere(6)),
      intact(11),
      brokenAt(8),
    ],
    ["newer", () => writeElsewhere(2), intact(10), intact(10)],
  ])(
    "needs an externally stored checkpoint to find that a log was %s before the store was opened",
    async (_what, tamper, without, withOutside) => {
      await tamper();
      const store = await open();
      expect(await verifyLog(store)).toEqual(without);
      expect(await verifyLog(store, { outside })).toMatchObject(withOutside);
    },
  );
});

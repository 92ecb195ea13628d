import { expect, it } from "vitest";
import type { AuditEntry } from "../../src/audit/chain.ts";
import type { EntryFilter } from "../../src/audit/entry-filter.ts";
import { type EntryReading, listEntries, nameEntryList, type StoredEntry } from "../../src/audit/log.ts";
import { identityLog, keyLog } from "../../src/audit/tables.ts";
import { readPageRequest } from "../../src/records/pages.ts";
import { openEntryLog } from "../../src/services/entry-log.ts";
import { present } from "../services/answers.ts";
import { writeEntries } from "../support/entries.ts";
import { describeStores } from "../support/on-both.ts";
import { openCounted } from "../support/thread-messages.ts";

describeStores("a list of entries", (makePlace) => {
  it("has a size, which is exact up to a limit, and then counts only the oldest entries", async () => {
    const store = await (await makePlace()).open();
    for (const user of ["ada", "eve", "ada"]) await writeEntries(store, 50, user);
    const request = { limit: 10, after: 0 };
    const sizeOf = async (filter: object, limits?: { read: number; counted: number }) =>
      (await listEntries(store.reader, request, { filter }, limits && { ...limits, scans: 1 })).totalSize;
    expect(await sizeOf({ user: "ada" })).toBe(100);
    expect(await sizeOf({ user: "eve", operation: "SIGN", from: new Date(0) })).toBe(50);
    expect(await sizeOf({ user: "nobody" })).toBe(0);
    expect(await sizeOf({ keyId: "key-1" })).toBe(3);
    // Scans and counts no more entries than allowed.
    expect(await sizeOf({ user: "eve" }, { read: 80, counted: 1000 })).toBe(30);
    expect(await sizeOf({ user: "ada" }, { read: 1000, counted: 70 })).toBe(70);
    expect(await sizeOf({ user: "eve", keyId: "key-1" }, { read: 2, counted: 70 })).toBe(1);
    expect(await sizeOf({}, { read: 1, counted: 1 })).toBe(150);
  });

  it("scans a limited number of entries for a page, and loses none between pages", async () => {
    const store = await (await makePlace()).open();
    for (const user of ["ada", "eve", "ada", "eve", "ada"]) await writeEntries(store, 50, user);
    const limits = { read: 30, counted: 1000, scans: 2 };
    const inPages = async (reading: EntryReading) => {
      const pages: (readonly AuditEntry[])[] = [];
      let token = "";
      do {
        const request = present(readPageRequest(20, token, nameEntryList(reading)));
        const { rows, nextPageToken } = await listEntries(store.reader, request, reading, limits);
        pages.push(rows);
        token = nextPageToken;
      } while (token !== "");
      return pages;
    };
    for (const isNewestFirst of [false, true]) {
      for (const keyId of [undefined, "key-1"]) {
        const reading = { filter: { user: "eve", keyId }, isNewestFirst };
        const whole = await listEntries(store.reader, { limit: 1000, after: 0 }, reading);
        const pages = await inPages(reading);
        expect(pages.flat()).toEqual(whole.rows);
        // The first two scans reach ten entries of eve, the last ones none. A key has only five entries.
        const sizes = keyId === undefined ? [10, 20, 20, 20, 20, 10, 0] : [2];
        expect(pages.map(({ length }) => length)).toEqual(sizes);
      }
    }
  });

  it.each([keyLog, identityLog])(
    "marks an entry that was changed in the database, as a watch does: $entries",
    async (log) => {
      const place = await makePlace();
      const store = await place.open();
      for (let n = 1; n <= 7; n++) {
        const entry = {
          keyId: `key-${n}`,
          operation: "SIGN",
          user: "ada",
          outcome: "OK",
          details: "",
        } as const;
        await store.write(async ({ audit, auditIdentity }) =>
          (log === keyLog ? audit : auditIdentity)(entry),
        );
      }
      await place.query(`update ${log.entries} set user_name = 'eve' where sequence = 2`);
      await place.query(`update ${log.entries} set owner = 'eve' where sequence = 4`);
      await place.query(`delete from ${log.entries} where sequence = 5`);
      const entryLog = openEntryLog(store, log);
      const list = async (filter: EntryFilter) =>
        (await entryLog.list(filter, { pageSize: 0, pageToken: "", newestFirst: false })).rows;
      const damagedOf = (entries: readonly StoredEntry[]) =>
        entries.filter(({ damaged }) => damaged).map(({ sequence }) => sequence);
      // The hash before entry 6 is missing.
      expect(damagedOf(await list({}))).toEqual([2, 4, 6]);
      expect(damagedOf(await list({ user: "eve" }))).toEqual([2]);
      expect(await list({ user: "ada", keyId: "key-3" })).toEqual([
        expect.not.objectContaining({ damaged: true }),
      ]);
      const { signal } = new AbortController();
      const watched: StoredEntry[] = [];
      for await (const entry of entryLog.watch({ filter: {}, after: 0, signal })) {
        watched.push(entry);
        if (entry.sequence === 7) break;
      }
      expect(damagedOf(watched)).toEqual([2, 4, 6]);
    },
  );
});

/** The largest integer in both databases; JavaScript numbers cannot represent it. */
const largest = 2n ** 63n - 1n;

const copyLast = (sequence: bigint) =>
  `insert into audit_entries select ${sequence}, key_id, operation, user_name, occurred_at_ms, outcome, details,
    entry_hash, entry_tag, client_address, request_id, owner, key_name from audit_entries where sequence = 8`;

describeStores("verification of a log with numbers too large for JavaScript", (makePlace) => {
  it.each([
    ["an entry's time", 4, `update audit_entries set occurred_at_ms = ${largest} where sequence = 4`],
    ["an entry's sequence", 4, `update audit_entries set sequence = ${largest} where sequence = 4`],
    ["the head's sequence", 9, `update audit_head set sequence = ${largest}`],
    ["a checkpoint's time", 8, `update audit_checkpoints set signed_at_ms = ${largest}`],
    ["a checkpoint's sequence", 9, `update audit_checkpoints set sequence = ${largest}`],
    ["the sequence of an entry added beyond the end", 9, copyLast(largest)],
    ["the sequence of an entry added before the first", 1, copyLast(-largest)],
  ])("reports the first broken entry without failing: %s", async (_what, broken, change) => {
    const place = await makePlace();
    const store = await place.open();
    await writeEntries(store, 8);
    await store.verifyAudit();
    await place.query(change);
    expect(await store.verifyAudit()).toMatchObject({ valid: false, firstBrokenSequence: broken });
  });
});

describeStores("a verification", (makePlace) => {
  it("reads entries on a worker thread: the event loop has as much work for 15,360 of them as for 256", async () => {
    const place = await makePlace();
    const { store, countMessages } = await openCounted(() => place.open());
    /** Counts the reads of a SQLite store, and the pages of entries: the thread sends one message for each. */
    const countWork = async () => {
      let pages = 0;
      const messages = await countMessages(() =>
        store.verifyAudit({ treeSizes: [], onProgress: () => (pages += 1) }),
      );
      return { messages, pages };
    };
    await writeEntries(store, 256);
    await store.verifyAudit();
    const short = await countWork();
    await writeEntries(store, 15_360 - 256);
    await store.verifyAudit();
    const long = await countWork();
    expect(long.pages - short.pages).toBeLessThanOrEqual(3);
    expect(long.messages).toBeLessThan(short.messages + 20);
  });

  it("distinguishes failures of its thread from faults of the log", async () => {
    const place = await makePlace();
    const store = await place.open();
    await writeEntries(store, 10);
    await place.query("alter table audit_entries rename to moved");
    const verifying = store.verifyAudit();
    await expect(verifying).rejects.toMatchObject({ name: "Error" });
    await place.query("alter table moved rename to audit_entries");
    expect(await store.verifyAudit()).toMatchObject({ valid: true, entries: 10 });
  });
});

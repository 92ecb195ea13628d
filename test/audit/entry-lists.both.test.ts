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

describeStores("the size of a filtered list of entries", (makePlace) => {
  it("is exact up to a limit, and then counts only the oldest entries", async () => {
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
});

describeStores("a filtered list of entries", (makePlace) => {
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
});

describeStores("an entry that was changed in the database", (makePlace) => {
  it.each([keyLog, identityLog])("is marked in lists and watches: $entries", async (log) => {
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
      await store.write(async ({ audit, auditIdentity }) => (log === keyLog ? audit : auditIdentity)(entry));
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
  });
});

import { expect, it } from "vitest";
import { listEntries } from "../../src/audit/log.ts";
import { writeEntries } from "../support/entries.ts";
import { describeStores } from "../support/on-both.ts";

describeStores("the size of a filtered list of entries", (makePlace) => {
  it("is exact up to a limit, and then counts only the oldest entries", async () => {
    const store = await (await makePlace()).open();
    for (const user of ["ada", "eve", "ada"]) await writeEntries(store, 50, user);
    const sizeOf = async (filter: object, limits?: { read: number; counted: number }) =>
      (await listEntries(store.reader, { limit: 10, after: 0 }, { filter }, limits)).totalSize;
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

import { expect, it } from "vitest";
import { StoreFailureError } from "../../src/database/store-error.ts";
import { addRow, readRowNames, writeEntries } from "../support/entries.ts";
import { describeStores } from "../support/on-both.ts";

describeStores("closing a store", (makePlace) => {
  it("completes and answers earlier writes", async () => {
    const place = await makePlace();
    const store = await place.open();
    const names = Array.from({ length: 20 }, (_, i) => `row ${i}`).sort();
    const writes = names.map((name) => store.write((transaction) => addRow(transaction, name)));
    await store.close();
    await Promise.all(writes);
    expect(await readRowNames(place)).toEqual(names);
  });

  it("signs a checkpoint that covers the last writes", async () => {
    const place = await makePlace();
    const store = await place.open();
    const written = writeEntries(store, 5);
    await store.close();
    await written;
    expect(await place.query("select sequence from audit_checkpoints")).toEqual([{ sequence: 5 }]);
  });

  it("rejects later writes", async () => {
    const store = await (await makePlace()).open();
    await store.close();
    await expect(writeEntries(store, 1)).rejects.toBeInstanceOf(StoreFailureError);
  });
});

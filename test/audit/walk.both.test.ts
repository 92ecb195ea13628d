/** The work of the event loop in a verification: it must not grow with the log, or a long log would stop all calls. */
import { Worker } from "node:worker_threads";
import { expect, it, vi } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { writeEntries } from "../support/entries.ts";
import { describeStores } from "../support/on-both.ts";

/** Counts the messages to threads, among them each read of a SQLite store, and the threads that were started. */
async function countWork(store: Store) {
  const posted = vi.spyOn(Worker.prototype, "postMessage");
  let pages = 0;
  await store.verifyAudit({ treeSizes: [], onProgress: () => (pages += 1) });
  const messages = posted.mock.calls.length;
  posted.mockRestore();
  return { messages, pages };
}

describeStores("a verification", (makePlace) => {
  it("reads entries in a thread: the event loop has the same work for 256 of them as for 15,360", async () => {
    const store = await (await makePlace()).open();
    await writeEntries(store, 256);
    await store.verifyAudit();
    const short = await countWork(store);
    await writeEntries(store, 15_360 - 256);
    await store.verifyAudit();
    const long = await countWork(store);
    // One message for each page of entries.
    expect(long.pages - short.pages).toBeLessThanOrEqual(3);
    expect(long.messages).toBeLessThan(short.messages + 20);
  });

  it("keeps the faults of its thread apart from those of the log", async () => {
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

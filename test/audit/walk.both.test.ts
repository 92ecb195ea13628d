/** Event loop work during a verification must not grow with the log, or a long log would block all calls. */
import { Worker } from "node:worker_threads";
import { expect, it, vi } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { writeEntries } from "../support/entries.ts";
import { describeStores } from "../support/on-both.ts";

/** Counts the messages to threads, including each read of a SQLite store, and the started threads. */
async function countWork(store: Store) {
  const posted = vi.spyOn(Worker.prototype, "postMessage");
  let pages = 0;
  await store.verifyAudit({ treeSizes: [], onProgress: () => (pages += 1) });
  const messages = posted.mock.calls.length;
  posted.mockRestore();
  return { messages, pages };
}

describeStores("a verification", (makePlace) => {
  it("reads entries on a worker thread: the event loop has as much work for 15,360 of them as for 256", async () => {
    const store = await (await makePlace()).open();
    await writeEntries(store, 256);
    await store.verifyAudit();
    const short = await countWork(store);
    await writeEntries(store, 15_360 - 256);
    await store.verifyAudit();
    const long = await countWork(store);
    // One message per page of entries.
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

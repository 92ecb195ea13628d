/** Event loop work during a verification must not grow with the log, or a long log would block all calls. */
import { expect, it } from "vitest";
import { writeEntries } from "../support/entries.ts";
import { describeStores } from "../support/on-both.ts";
import { openCounted } from "../support/thread-messages.ts";

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

import { renameSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { makeSqlitePlace } from "../support/on-both.ts";
import { watchThreads } from "../support/worker-threads.ts";

it("a failed read triggers a probe, which finds that the store is not writable", async () => {
  // Disables the probes every second and after ten seconds without a write.
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    const place = await makeSqlitePlace();
    const readers = watchThreads("sqlite reader");
    const store = await place.open();
    const problem = new Promise((resolve) => store.watchWrites((found) => resolve(found?.reason)));
    const path = join(place.directory, "qsp.db");
    renameSync(path, `${path}.away`);
    await readers.endAll();
    const read = store.reader.selectFrom("list_counts").selectAll().execute();
    await expect(read).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(await problem).toBe("its file was moved or removed, or cannot be opened");
    renameSync(`${path}.away`, path);
  } finally {
    vi.useRealTimers();
  }
});

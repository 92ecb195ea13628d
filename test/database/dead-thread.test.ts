import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { statement } from "../../src/database/connection.ts";
import { openSqliteReader, openSqliteWriter } from "../../src/database/sqlite.ts";
import { StoreFailureError } from "../../src/database/store-error.ts";
import { addRow, readRowNames } from "../support/entries.ts";
import { makeSqlitePlace } from "../support/on-both.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { watchThreads } from "../support/worker-threads.ts";

const writerName = "sqlite writer";
const readerName = "sqlite reader";

describe("a store whose SQLite thread has ended", () => {
  it("never runs the rest of a transaction on the replacement thread", async () => {
    const path = join(makeTemporaryDirectory(), "rows.db");
    writeFileSync(path, "");
    const threads = watchThreads(writerName);
    const writer = openSqliteWriter(path);
    onTestFinished(() => writer.close());
    await writer.run([statement("create table rows (name text)")]);
    await writer.begin([statement("insert into rows values ('first')")]);
    await threads.endAll();
    await expect(writer.run([statement("insert into rows values ('second')")])).rejects.toMatchObject({
      code: "UNAVAILABLE",
      cause: { message: "the store's thread ended during a transaction" },
    });
    await expect(writer.commit([])).rejects.toBeInstanceOf(StoreFailureError);
    await writer.rollback();
    expect(await writer.run([statement("select name from rows")])).toMatchObject([{ rows: [] }]);
  });

  it("answers running reads with UNAVAILABLE, and reads again on the next call", async () => {
    const place = await makeSqlitePlace();
    const threads = watchThreads(readerName);
    const store = await place.open();
    const read = () => store.reader.selectFrom("list_counts").selectAll().execute();
    await read();
    const ending = threads.endAll();
    await expect(read()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await ending;
    expect(await read()).toEqual([]);
  });

  it("loses no acknowledged write, whenever its threads end", { timeout: 180_000 }, async () => {
    const place = await makeSqlitePlace();
    const threads = [watchThreads(writerName), watchThreads(readerName)];
    const store = await place.open();
    const acknowledged = new Set<string>();
    const refused: unknown[] = [];
    let isOver = false;
    const write = async (caller: number): Promise<void> => {
      for (let n = 0; !isOver; n += 1) {
        const name = `row ${n} of ${caller}`;
        const writing = store.write((transaction) => addRow(transaction, name));
        await writing.then(() => acknowledged.add(name)).catch((error: unknown) => refused.push(error));
      }
    };
    const writing = Array.from({ length: 8 }, (_, caller) => write(caller));
    for (let times = 0; times < 20; times += 1) {
      const before = acknowledged.size;
      await expect.poll(() => acknowledged.size, { interval: 1 }).toBeGreaterThan(before + times);
      await threads[times % 2]?.endAll();
    }
    isOver = true;
    await Promise.all(writing);
    const names = new Set(await readRowNames(place));
    expect([...acknowledged].filter((name) => !names.has(name))).toEqual([]);
    expect(refused.length).toBeGreaterThan(0);
    for (const error of refused) expect(error).toMatchObject({ code: "UNAVAILABLE" });
    expect(await store.verifyAudit()).toMatchObject({ valid: true });
    // Each loss is noticed by a call, and a new thread replaces the old one.
    expect(threads.map(({ started }) => started > 1)).toEqual([true, true]);
  });

  it("never opens a different file instead, which would be empty", async () => {
    const place = await makeSqlitePlace();
    const threads = watchThreads(writerName);
    const store = await place.open();
    const path = join(place.directory, "qsp.db");
    renameSync(path, `${path}.moved`);
    await threads.endAll();
    const write = () => store.write((transaction) => addRow(transaction, "lost"));
    await expect(write()).rejects.toMatchObject({
      code: "UNAVAILABLE",
      cause: { message: `the store's file ${path} was removed` },
    });
    renameSync(`${path}.moved`, path);
    await write();
    expect(await readRowNames(place)).toEqual(["lost"]);
  });

  it("gives up after five threads that end before answering, and reports it once", async () => {
    const path = join(makeTemporaryDirectory(), "rows.db");
    writeFileSync(path, "");
    const threads = watchThreads(readerName, { endAtOnce: true });
    const losses: Error[] = [];
    const reader = openSqliteReader(path, (error) => losses.push(error));
    onTestFinished(() => reader.close());
    const read = () => reader.run([statement("select 1")]);
    for (let deaths = 0; deaths < 5; deaths += 1)
      await expect(read()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(losses).toMatchObject([{ message: "the store's threads keep ending before they answer" }]);
    await expect(read()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(threads.started).toBe(5);
  });
});

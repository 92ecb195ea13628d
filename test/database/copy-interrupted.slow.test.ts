import pg from "pg";
import { expect, it, onTestFinished } from "vitest";
import { copyStore } from "../../src/database/copy.ts";
import type { Database, DatabaseLocation } from "../../src/database/database.ts";
import { openDatabase } from "../support/open-store.ts";
import { describePostgres, freshDatabaseUrl } from "../support/postgres.ts";

describePostgres("a copy of a store whose connection breaks", () => {
  it("fails instead of resuming with newer data", { timeout: 180_000 }, async () => {
    const [sourceUrl, targetUrl] = [await freshDatabaseUrl(), await freshDatabaseUrl()];
    const source = await open({ kind: "postgres", url: sourceUrl });
    const target = await open({ kind: "postgres", url: targetUrl });
    const [watcher, holder] = [await connect(sourceUrl), await connect(targetUrl)];
    await watcher.query("insert into list_counts values ('a', 1)");
    await watcher.query(
      "insert into wallets select n, n, '', n, '', '', 0, '' from generate_series(1, 3) as n",
    );

    // The copy blocks in its first table with rows, and its connection is terminated meanwhile.
    await holder.query("begin; lock table list_counts");
    const copied = copyStore(source, target, () => {});
    const outcome = copied.then(
      () => "copied",
      () => "failed",
    );
    const waiting = `select 1 from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
    await expect.poll(() => holder.query(waiting)).toMatchObject({ rowCount: 1 });
    await watcher.query(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and state = 'idle in transaction'`);
    await watcher.query("delete from wallets");
    await holder.query("commit");
    expect(await outcome).toBe("failed");
    expect((await holder.query("select * from list_counts")).rows).toEqual([]);
  });
});

async function open(location: DatabaseLocation): Promise<Database> {
  const database = await openDatabase(location);
  onTestFinished(() => database.close());
  return database;
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

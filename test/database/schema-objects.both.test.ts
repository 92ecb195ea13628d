/** Foreign objects in a store's schema, which record tags do not cover. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import type { OpenMode } from "../../src/database/database.ts";
import { createRevocations } from "../../src/identity/revocations.ts";
import { runCommand } from "../cli/operator/command-line.ts";
import { describeStores, makePostgresPlace, makeSqlitePlace, type Place } from "../support/on-both.ts";
import { describePostgres } from "../support/postgres.ts";
import { storageError } from "../support/storage-error.ts";

const modes: readonly OpenMode[] = ["create", "upgrade", "existing"];

async function makeStore(makePlace: () => Promise<Place>): Promise<Place> {
  const place = await makePlace();
  await (await place.open()).close();
  return place;
}

/** Plants a trigger that skips every token revocation. */
async function plantTrigger({ location, query }: Place): Promise<void> {
  if (location.kind === "sqlite")
    await query("create trigger planted before insert on users begin select raise(ignore); end");
  else {
    await query("create function skip() returns trigger language plpgsql as 'begin return null; end'");
    await query("create trigger planted before insert on users execute function skip()");
  }
}

describeStores("a trigger in a store", (makePlace) => {
  it.each(modes)("is rejected in a sentence that names it (mode %s)", async (mode) => {
    const place = await makeStore(makePlace);
    await plantTrigger(place);
    await expect(place.open({ mode })).rejects.toThrow(
      storageError(/the trigger planted on users; .*drop them/),
    );
    await place.query(`drop trigger planted${place.location.kind === "sqlite" ? "" : " on users"}`);
    await (await place.open({ mode })).close();
  });
});

describeStores("an index added to a store by someone else", (makePlace) => {
  it("cannot make a revocation fail silently", async () => {
    const place = await makeStore(makePlace);
    await place.query("create unique index planted on identity_entries (operation)");
    const revocations = createRevocations(await place.open());
    const token = { client: "shop", origin: { clientAddress: "", requestId: "" } };
    await revocations.add({ ...token, tokenId: "1" });
    await expect(revocations.add({ ...token, tokenId: "2" })).rejects.toThrow();
  });
});

describe("in SQLite", () => {
  it("rejects a view in place of a table", async () => {
    const place = await makeStore(makeSqlitePlace);
    await place.query("alter table users rename to hidden");
    await place.query("create view users as select * from hidden where 0");
    await expect(place.open()).rejects.toThrow(storageError(/the view users/));
  });

  it("reports a table whose statement differs in one letter in store verify", async () => {
    const place = await makeStore(makeSqlitePlace);
    const database = new DatabaseSync(join(place.directory, "qsp.db"), { defensive: false });
    database.exec("pragma writable_schema = on");
    database.exec("update sqlite_schema set sql = replace(sql, 'text', 'texu') where name = 'users'");
    database.close();
    const { code, stdout } = await runCommand(place, ["store", "verify"]);
    expect([code, stdout]).toEqual([
      1,
      expect.stringContaining("the table users was changed outside of the server"),
    ]);
  });
});

describePostgres("in PostgreSQL", () => {
  it.each<[name: string, statements: readonly string[]]>([
    ["rule planted on users", ["create rule planted as on insert to users do instead nothing"]],
    ["policy planted on users", ["create policy planted on users using (false)"]],
    [
      "view users",
      ["alter table users rename to hidden", "create view users as select * from hidden where false"],
    ],
  ])("rejects the %s", async (name, statements) => {
    const place = await makeStore(makePostgresPlace);
    for (const statement of statements) await place.query(statement);
    await expect(place.open()).rejects.toThrow(storageError(new RegExp(`the ${name};`)));
  });

  it("accepts a view that reads a table", async () => {
    const place = await makeStore(makePostgresPlace);
    await place.query("create view report as select count(*) from kms_keys");
    await (await place.open()).close();
  });
});

import { existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { Connection } from "../../src/database/connection.ts";
import { type OpenMode, openDatabaseOf } from "../../src/database/database.ts";
import { checkPostgres } from "../../src/database/postgres.ts";
import type { TableOwner } from "../../src/database/schema.ts";
import { openIssuer } from "../../src/identity/issuer.ts";
import { createIssuerStore } from "../../src/identity/issuer-store.ts";
import { createRevocations } from "../../src/identity/revocations.ts";
import { recordTables } from "../../src/records/tables.ts";
import { runCommand } from "../cli/operator/command-line.ts";
import { addRow, readRowNames } from "../support/entries.ts";
import { describeStores, makePostgresPlace, makeSqlitePlace, type Place } from "../support/on-both.ts";
import { tableNames } from "../support/open-store.ts";
import { describePostgres } from "../support/postgres.ts";
import { startServer } from "../support/start-server.ts";
import { storageError } from "../support/storage-error.ts";
import { readTableNames } from "../support/tables.ts";

const modes: readonly OpenMode[] = ["create", "upgrade", "existing"];

describeStores("a store from a different version", (makePlace) => {
  it.each(modes)("is rejected in one sentence if newer, and left unchanged (mode %s)", async (mode) => {
    const place = await makeStore(makePlace);
    await place.query("insert into kysely_migration (name, timestamp) values ('9999-from-the-future', '')");
    const before = await readSteps(place);
    await expect(place.open({ mode })).rejects.toThrow(
      storageError(/has the migration step 9999-from-the-future from a newer version/),
    );
    expect(await readSteps(place)).toEqual(before);
  });

  it("is rejected in one sentence by mode existing if older, and left unchanged", async () => {
    const place = await makeStore(makePlace);
    await place.query("delete from kysely_migration where name = (select max(name) from kysely_migration)");
    const before = await readSteps(place);
    await expect(place.open({ mode: "existing" })).rejects.toThrow(
      storageError(/older version.* lacks the migration step 0\S+; start the server/),
    );
    expect(await readSteps(place)).toEqual(before);
  });

  it("counts as older if it lacks an intermediate step, and gets the step on the next start", async () => {
    const { location } = await makePlace();
    const owner = (...numbers: number[]): TableOwner => ({
      tables: recordTables.tables,
      steps: Object.fromEntries(
        numbers.map((number) => [`000${number}-step`, () => [`create table t${number} (x text)`]]),
      ),
    });
    await (await openDatabaseOf([owner(1, 3)], location)).close();
    const program = [owner(1, 2, 3)];
    await expect(openDatabaseOf(program, location, "existing")).rejects.toThrow(
      storageError(
        /older version.* lacks the migration step 0002-step; start the server with it once to upgrade it$/,
      ),
    );
    await (await openDatabaseOf(program, location)).close();
    await (await openDatabaseOf(program, location, "existing")).close();
  });

  it("does not count as newer if the time of a step is damaged", async () => {
    const place = await makeStore(makePlace);
    await place.query("update kysely_migration set timestamp = '' where name = '0006-identity'");
    await expect(place.open()).rejects.toThrow(storageError(/cannot be opened: .*0006-identity/));
  });
});

describeStores("a missing store", (makePlace) => {
  it.each(modes.filter((mode) => mode !== "create"))(
    "is rejected in one sentence by mode %s, and nothing is created",
    async (mode) => {
      const place = await makePlace();
      await expect(place.open({ mode })).rejects.toThrow(storageError(/does not (exist|contain a store)/));
      expect(existsSync(place.keyFile)).toBe(false);
      await expect(place.query("select * from kysely_migration")).rejects.toThrow(/kysely_migration/);
    },
  );
});

describeStores("an empty database", (makePlace) => {
  it("becomes a single store, with one issuer key, when four programs open it at once", async () => {
    const [place, calm] = [await makePlace(), await makePlace()];
    const provider = await createCryptoProvider("openssl");
    onTestFinished(() => provider.close());
    const stores = await Promise.all([1, 2, 3, 4].map(() => place.open()));
    const pems = stores.map(({ checkpointKey }) => checkpointKey.toPem());
    expect(new Set(pems).size).toBe(1);
    await Promise.all(
      stores.map((store, i) => store.write((transaction) => addRow(transaction, `row ${i}`))),
    );
    expect(await readRowNames(place)).toEqual(["row 0", "row 1", "row 2", "row 3"]);
    expect(await stores[0]?.verifyAudit()).toMatchObject({ valid: true, entries: 4 });
    const issuers = await Promise.all(
      stores.map((store) => openIssuer({ provider, store: createIssuerStore(store), now: () => new Date() })),
    );
    const keyIds = await Promise.all(issuers.map(({ publicJwks }) => publicJwks()));
    expect(new Set(keyIds.flat().map(({ kid }) => kid)).size).toBe(1);
    for (const issuer of issuers) await issuer.close();
    await calm.open();
    expect(await readSteps(place)).toEqual(await readSteps(calm));
  });

  it("gets no table that a backup would omit", async () => {
    const place = await makeStore(makePlace);
    const ours = (await readTableNames(place)).filter((name) => !name.startsWith("kysely_"));
    expect(ours.sort()).toEqual([...tableNames].sort());
  });
});

describePostgres("a PostgreSQL database with a different encoding", () => {
  it.each(["LATIN1", "SQL_ASCII"])("is rejected and left unchanged: %s", async (encoding) => {
    const admin = await makePostgresPlace();
    if (admin.location.kind !== "postgres") throw new Error("not PostgreSQL");
    const url = new URL(admin.location.url);
    const name = `${url.pathname.slice(1)}_${encoding.toLowerCase()}`;
    await admin.query(`create database ${name} encoding '${encoding}' locale 'C' template template0`);
    onTestFinished(async () => void (await admin.query(`drop database ${name} with (force)`)));
    url.pathname = `/${name}`;
    await expect(admin.open({ location: { kind: "postgres", url: url.href } })).rejects.toThrow(
      storageError(new RegExp(`encoding ${encoding}; create one with: create database NAME encoding 'UTF8'`)),
    );
    const client = new pg.Client({ connectionString: url.href });
    await client.connect();
    onTestFinished(() => client.end());
    const { rows } = await client.query("select 1 from pg_tables where schemaname = 'public'");
    expect(rows).toEqual([]);
  });

  it("is written in UTF-8, whatever a role or URL specifies", async () => {
    const place = await makePostgresPlace();
    if (place.location.kind !== "postgres") throw new Error("not PostgreSQL");
    const url = new URL(place.location.url);
    await place.query(
      `alter database ${url.pathname.slice(1)} set default_transaction_isolation = 'serializable'`,
    );
    url.searchParams.set("client_encoding", "LATIN1");
    const store = await place.open({ location: { kind: "postgres", url: url.href } });
    await store.write((transaction) => addRow(transaction, "emoji 🔑"));
    expect(await readRowNames(place)).toEqual(["emoji 🔑"]);
  });
});

/** The schema steps that a store has completed. */
async function readSteps({ query }: Place): Promise<unknown[]> {
  return (await query("select name from kysely_migration order by name")).map(({ name }) => name);
}

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

/** A PostgreSQL with these settings. */
const connect = (settings: { fsync: string; fullPageWrites: string }): Connection => ({
  run: async () => [{ rows: [{ version: "170000", encoding: "UTF8", ...settings }] }],
  close: async () => {},
});

it.each([
  ["on", "on", []],
  ["off", "on", ["fsync = off"]],
  ["on", "off", ["full_page_writes = off"]],
  ["off", "off", ["fsync = off", "full_page_writes = off"]],
])(
  "the PostgreSQL check with fsync %s and full_page_writes %s finds %j",
  async (fsync, fullPageWrites, named) => {
    const risks = await checkPostgres(connect({ fsync, fullPageWrites }));
    expect(risks.map((risk) => /^PostgreSQL has (\S+ = off).*; set \S+ = on$/.exec(risk)?.[1])).toEqual(
      named,
    );
  },
);

describePostgres("a server whose PostgreSQL runs without fsync", () => {
  it("starts, and warns once about the setting", async () => {
    const { directory, settings } = await makePostgresPlace();
    const server = await startServer({ dataDir: directory, args: settings });
    const { stderr } = await server.stop();
    const lines = stderr.split("\n").filter((line) => line.includes("fsync"));
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 40, msg: expect.stringMatching(/^PostgreSQL has fsync = off, .*set fsync = on$/) },
    ]);
  });
});

import { existsSync } from "node:fs";
import pg from "pg";
import { expect, it, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { type OpenMode, openDatabaseOf } from "../../src/database/database.ts";
import type { TableOwner } from "../../src/database/schema.ts";
import { openIssuer } from "../../src/identity/issuer.ts";
import { createIssuerStore } from "../../src/identity/issuer-store.ts";
import { recordTables } from "../../src/records/tables.ts";
import { addRow, readRowNames } from "../support/entries.ts";
import { describeStores, makePostgresPlace, type Place } from "../support/on-both.ts";
import { tableNames } from "../support/open-store.ts";
import { describePostgres } from "../support/postgres.ts";
import { storageError } from "../support/storage-error.ts";
import { readTableNames } from "../support/tables.ts";

const modes: readonly OpenMode[] = ["create", "upgrade", "existing"];

describeStores("a store from a different version", (makePlace) => {
  it.each(modes)("is rejected in one sentence if newer, and left unchanged (mode %s)", async (mode) => {
    const place = await makePlace();
    await (await place.open()).close();
    await place.query("insert into kysely_migration (name, timestamp) values ('9999-from-the-future', '')");
    const before = await readSteps(place);
    await expect(place.open({ mode })).rejects.toThrow(
      storageError(/has the migration step 9999-from-the-future from a newer version/),
    );
    expect(await readSteps(place)).toEqual(before);
  });

  it("is rejected in one sentence by mode existing if older, and left unchanged", async () => {
    const place = await makePlace();
    await (await place.open()).close();
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
    const place = await makePlace();
    await (await place.open()).close();
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
    const place = await makePlace();
    await (await place.open()).close();
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

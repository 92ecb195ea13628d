import { existsSync } from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import type { OpenMode } from "../../src/database/database.ts";
import { openDatabase, tableNames } from "../../src/open-store.ts";
import { addRow, readRowNames } from "../support/entries.ts";
import { describeStores, type Place } from "../support/on-both.ts";
import { runToEndHere } from "../support/run-here.ts";
import { storageError } from "../support/storage-error.ts";
import { readTableNames } from "../support/tables.ts";

const modes: readonly OpenMode[] = ["create", "existing"];

describeStores("a store of another version", (makePlace) => {
  it.each(modes)("is refused with a sentence if it is newer, and not changed (mode %s)", async (mode) => {
    const place = await makePlace();
    await (await place.open()).close();
    await place.query("insert into kysely_migration (name, timestamp) values ('9999-from-the-future', '')");
    const before = await readSteps(place);
    await expect(place.open({ mode })).rejects.toThrow(storageError(/newer version/));
    expect(await readSteps(place)).toEqual(before);
  });

  it("is refused with a sentence by mode existing if it is older, and not changed", async () => {
    const place = await makePlace();
    await (await place.open()).close();
    await place.query("delete from kysely_migration where name = (select max(name) from kysely_migration)");
    const before = await readSteps(place);
    await expect(place.open({ mode: "existing" })).rejects.toThrow(storageError(/older version/));
    expect(await readSteps(place)).toEqual(before);
  });

  it("ends a start of the program with one sentence and exit code 2 if it is newer", async () => {
    const place = await makePlace();
    await (await place.open()).close();
    await place.query("insert into kysely_migration (name, timestamp) values ('9999-from-the-future', '')");
    expect(await runToEndHere(["serve", "--port", "0", ...place.settings])).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^qsp: [^\n]*newer version[^\n]*\n$/),
    });
  });
});

describeStores("a store that is not there", (makePlace) => {
  it("is refused with a sentence by mode existing, and nothing is made", async () => {
    const place = await makePlace();
    await expect(place.open({ mode: "existing" })).rejects.toThrow(
      storageError(/does not (exist|contain a store)/),
    );
    expect(existsSync(place.keyFile)).toBe(false);
    await expect(place.query("select * from kysely_migration")).rejects.toThrow(/kysely_migration/);
  });
});

describeStores("an empty database", (makePlace) => {
  it("is made one store by four programs that open it at once", async () => {
    const place = await makePlace();
    const stores = await Promise.all([1, 2, 3, 4].map(() => place.open()));
    const pems = stores.map(({ checkpointKey }) => checkpointKey.toPem());
    expect(new Set(pems).size).toBe(1);
    await Promise.all(
      stores.map((store, i) => store.write((transaction) => addRow(transaction, `row ${i}`))),
    );
    expect(await readRowNames(place)).toEqual(["row 0", "row 1", "row 2", "row 3"]);
    expect(await stores[0]?.verifyAudit()).toMatchObject({ valid: true, entries: 4 });
  });

  it("gets no table that a backup would leave out", async () => {
    const place = await makePlace();
    await (await place.open()).close();
    const ours = (await readTableNames(place)).filter((name) => !name.startsWith("kysely_"));
    expect(ours.sort()).toEqual([...tableNames].sort());
  });

  it("takes each step of the schema once when four programs take them at once", async () => {
    const [place, calm] = [await makePlace(), await makePlace()];
    const open = async ({ location }: Place): Promise<void> => {
      const database = await openDatabase(location);
      onTestFinished(() => database.close());
    };
    await Promise.all([1, 2, 3, 4].map(() => open(place)));
    await open(calm);
    expect(await readSteps(place)).toEqual(await readSteps(calm));
  });
});

/** The steps of the schema that a store has taken. */
async function readSteps({ query }: Place): Promise<unknown[]> {
  return (await query("select name from kysely_migration order by name")).map(({ name }) => name);
}

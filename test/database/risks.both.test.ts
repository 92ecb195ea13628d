/** PostgreSQL settings with which a crash of its machine loses committed data. */
import { describe, expect, it, onTestFinished } from "vitest";
import type { Connection } from "../../src/database/connection.ts";
import { checkPostgres } from "../../src/database/postgres.ts";
import { describeStores, makePostgresPlace } from "../support/on-both.ts";
import { openDatabase } from "../support/open-store.ts";
import { describePostgres } from "../support/postgres.ts";
import { startServer } from "../support/start-server.ts";

/** A PostgreSQL with these settings. */
const connect = (settings: { fsync: string; fullPageWrites: string }): Connection => ({
  run: async () => [{ rows: [{ version: "170000", encoding: "UTF8", ...settings }] }],
  close: async () => {},
});

describe("the PostgreSQL check", () => {
  it.each([
    ["on", "on", []],
    ["off", "on", ["fsync = off"]],
    ["on", "off", ["full_page_writes = off"]],
    ["off", "off", ["fsync = off", "full_page_writes = off"]],
  ])("with fsync %s and full_page_writes %s finds %j", async (fsync, fullPageWrites, named) => {
    const risks = await checkPostgres(connect({ fsync, fullPageWrites }));
    expect(risks.map((risk) => /^PostgreSQL has (\S+ = off).*; set \S+ = on$/.exec(risk)?.[1])).toEqual(
      named,
    );
  });
});

describeStores("a database's risks", (makePlace) => {
  it("reflect its settings", async () => {
    const { location } = await makePlace();
    const database = await openDatabase(location);
    onTestFinished(() => database.close());
    // The tests' PostgreSQL runs without fsync, because its data is disposable.
    expect(database.risks).toEqual(
      location.kind === "sqlite" ? [] : [expect.stringContaining("fsync = off")],
    );
  });
});

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

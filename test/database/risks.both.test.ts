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
    { fsync: "on", fullPageWrites: "on", named: [] },
    { fsync: "off", fullPageWrites: "on", named: ["fsync = off"] },
    { fsync: "on", fullPageWrites: "off", named: ["full_page_writes = off"] },
    { fsync: "off", fullPageWrites: "off", named: ["fsync = off", "full_page_writes = off"] },
  ])(
    "finds $named with fsync $fsync and full_page_writes $fullPageWrites",
    async ({ named, ...settings }) => {
      const risks = await checkPostgres(connect(settings));
      expect(risks.map((risk) => /^PostgreSQL has (\S+ = off)/.exec(risk)?.[1])).toEqual(named);
      for (const risk of risks) expect(risk).toMatch(/; set \S+ = on$/);
    },
  );
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

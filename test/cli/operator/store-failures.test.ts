/** What an operator is told of a store that is there and cannot be used: one sentence, and exit code 2, or 4 if it may pass. */
import { randomBytes } from "node:crypto";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findPort } from "../../../src/server/find-port.ts";
import { describeStores, makePostgresPlace, makeSqlitePlace, type Place } from "../../support/on-both.ts";
import { describePostgres } from "../../support/postgres.ts";
import { type Run, runToEndHere } from "../../support/run-here.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";

const timeout = 180_000;
const serve = ["serve", "--port", "0"];

describeStores("a store without one of its tables", (makePlace) => {
  it.each([
    { name: "audit verify", words: ["audit", "verify"], table: "audit_entries" },
    { name: "user list", words: ["user", "list"], table: "users" },
    {
      name: "backup",
      words: [
        "backup",
        join(
          makeTemporaryDirectory(() => {}),
          "file",
        ),
      ],
      table: "wallets",
    },
    { name: "a start", words: serve, table: "sealed_secrets" },
  ])("is not whole, says $name", async ({ words, table }) => {
    const place = await makeUsed(await makePlace());
    await place.query(`drop table ${table}`);
    expectRefused(await runToEndHere([...words, ...place.settings]), /is damaged: .*restore a backup/);
  });
});

describe("a store that cannot be reached", { timeout }, () => {
  it("is not said to be missing where the data directory is a file", async () => {
    const dataDir = join(makeTemporaryDirectory(), "file");
    writeFileSync(dataDir, "");
    expectRefused(await runToEndHere(["audit", "verify", "--data-dir", dataDir]), /cannot be read: ENOTDIR/);
  });

  it.skipIf(process.getuid?.() === 0)("is not said to be missing where others may not look", async () => {
    const place = await makeUsed(await makeSqlitePlace());
    chmodSync(place.directory, 0);
    const exit = await runToEndHere(["audit", "verify", ...place.settings]);
    chmodSync(place.directory, 0o700);
    expectRefused(exit, /cannot be read: EACCES/);
  });
});

describe("a database that does not answer", { timeout }, () => {
  it.each([1, 2])(
    "ends a start with %i event loops with 4, so that a service manager tries again",
    async (workers) => {
      const url = `postgres://127.0.0.1:${await findPort(0, "127.0.0.1")}/qsp`;
      const args = [
        "--workers",
        String(workers),
        "--data-dir",
        makeTemporaryDirectory(),
        "--database-url",
        url,
      ];
      expectRefused(await runToEndHere([...serve, ...args]), /cannot be opened: .*ECONNREFUSED/, 4);
    },
  );
});

describePostgres("a database that does not exist", () => {
  it("ends a start with 2: another start does not create it", { timeout }, async () => {
    const { location, directory } = await makePostgresPlace();
    if (location.kind !== "postgres") throw new Error("only PostgreSQL has databases");
    const url = new URL(location.url);
    url.pathname = "/misspelt";
    const args = ["--data-dir", directory, "--database-url", url.href];
    expectRefused(await runToEndHere([...serve, ...args]), /"misspelt" does not exist/);
  });
});

describePostgres("a role of PostgreSQL", () => {
  it.each([0, 1, 2])(
    "that may connect %i times is told when these are too few",
    { timeout },
    async (limit) => {
      const place = await makePostgresPlace();
      const { settings, role } = await withRole(place);
      await place.query(
        `alter database ${new URL(settings.at(-1) ?? "").pathname.slice(1)} owner to ${role}`,
      );
      await place.query(`alter role ${role} connection limit ${limit}`);
      expectRefused(await runToEndHere([...serve, ...settings]), /too many connections for role/, 4);
    },
  );

  it("that may not write to the schema is told so", { timeout }, async () => {
    const place = await makePostgresPlace();
    const { settings } = await withRole(place);
    expectRefused(await runToEndHere([...serve, ...settings]), /permission denied for schema public/);
  });
});

/** Leaves a store that was used. */
async function makeUsed(place: Place): Promise<Place> {
  await (await place.open()).close();
  return place;
}

/** Makes a role that may log in, and the settings that a program needs to be that. */
async function withRole({ query, location, directory }: Place) {
  if (location.kind !== "postgres") throw new Error("only PostgreSQL has roles");
  const url = new URL(location.url);
  const role = `role_${randomBytes(8).toString("hex")}`;
  url.username = role;
  await query(`create role ${role} login`);
  return { settings: ["--data-dir", directory, "--database-url", url.href], role };
}

function expectRefused({ code, stdout, stderr }: Run, sentence: RegExp, expected = 2): void {
  const lines = stderr.split("\n").filter((line) => !/ of .* (rows|entries) /.test(line));
  expect({ code, stdout, lines }).toEqual({
    code: expected,
    stdout: "",
    lines: [expect.stringMatching(sentence), ""],
  });
  expect(lines[0]).toMatch(/^qsp: /);
}

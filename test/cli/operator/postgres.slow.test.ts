/** Messages about a PostgreSQL that cannot be used, or whose password is exposed. */
import { randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import { makePostgresPlace, type Place } from "../../support/on-both.ts";
import { describePostgres } from "../../support/postgres.ts";
import { type Run, runToEndHere } from "../../support/run-here.ts";
import { startServer } from "../../support/start-server.ts";

const timeout = 180_000;
const serve = ["serve", "--port", "0"];
const password = "correct-horse-battery-staple";

describePostgres("a database that does not exist", () => {
  it("ends a start with 2: another start does not create it", { timeout }, async () => {
    const { location, directory } = await makePostgresPlace();
    const url = new URL(databaseUrlOf(location));
    url.pathname = "/misspelt";
    const args = ["--data-dir", directory, "--database-url", url.href];
    expectRefused(await runToEndHere([...serve, ...args]), /"misspelt" does not exist/);
  });
});

describePostgres("a database that allows no connections", () => {
  it("ends a start with 4, so that a service manager retries", { timeout }, async () => {
    const [{ query }, { location, settings }] = [await makePostgresPlace(), await makePostgresPlace()];
    const { pathname } = new URL(databaseUrlOf(location));
    await query(`alter database ${pathname.slice(1)} allow_connections false`);
    expectRefused(await runToEndHere([...serve, ...settings]), /not currently accepting connections/, 4);
  });
});

describePostgres("a role of PostgreSQL", () => {
  it.each([0, 1, 2])(
    "that may connect %i times gets an error if these are too few",
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

  it("that may not write to the schema gets an error", { timeout }, async () => {
    const place = await makePostgresPlace();
    const { settings } = await withRole(place);
    expectRefused(await runToEndHere([...serve, ...settings]), /permission denied for schema public/);
  });
});

describePostgres("the password of a database", () => {
  it("in a flag of a server or a command causes a warning, which does not repeat it", {
    timeout,
  }, async () => {
    const place = await makePostgresPlace();
    const plain = databaseUrlOf(place.location);
    const url = new URL(plain);
    url.password = password;
    const server = await startServer({ dataDir: place.directory, args: ["--database-url", url.href] });
    const { stderr } = await server.stop();
    expect(stderr).toMatch(/^.*"level":40.*"msg":"(?=[^"]*password)[^"]*QSP_DATABASE_URL/m);
    expect(stderr).not.toContain(password);

    const list = ["user", "list", "--data-dir", place.directory];
    const warningOf = async (flags: string[], env = {}) =>
      (await runToEndHere([...list, ...flags], env)).stderr;
    for (const flags of [["--database-url", url.href], [`--database-url=${url.href}`]])
      expect(await warningOf(flags)).toMatch(/^qsp: warning: (?!.*battery)[^\n]*QSP_DATABASE_URL[^\n]*\n$/);
    expect(await warningOf(["--database-url", plain], { PGPASSWORD: password })).toBe("");
    expect(await warningOf([], { QSP_DATABASE_URL: url.href })).toBe("");
  });
});

/** Creates a role that may log in, and the settings to connect as that role. */
async function withRole({ query, location, directory }: Place) {
  const url = new URL(databaseUrlOf(location));
  const role = `role_${randomBytes(8).toString("hex")}`;
  url.username = role;
  await query(`create role ${role} login`);
  return { settings: ["--data-dir", directory, "--database-url", url.href], role };
}

function databaseUrlOf(location: Place["location"]): string {
  if (location.kind !== "postgres") throw new Error("SQLite has no URL");
  return location.url;
}

function expectRefused({ code, stdout, stderr }: Run, sentence: RegExp, expected = 2): void {
  expect({ code, stdout, lines: stderr.split("\n") }).toEqual({
    code: expected,
    stdout: "",
    lines: [expect.stringMatching(sentence), ""],
  });
}

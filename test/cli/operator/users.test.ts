/** qsp user and client: which users may log in, when they no longer may, and that no secret is stored. */
import { scryptSync } from "node:crypto";
import { chmodSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { leastScrypt } from "../../support/cheap-scrypt.ts";
import { makeSqlitePlace, type Place } from "../../support/on-both.ts";
import { password } from "../../support/passwords.ts";
import { refusal } from "../../support/refusal.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import { countUsers, makeSettings, runCommand, runProgram, startTokenServer } from "./command-line.ts";

vi.mock("node:crypto", async (load) => (await import("../../support/cheap-scrypt.ts")).cheapen(await load()));

const timeout = 180_000;
const otherPassword = "incorrect horse battery";
const revoked = { code: "Unauthenticated", reason: "TOKEN_REVOKED" };
const failed = { code: "Unauthenticated", reason: "LOGIN_FAILED" };

/** The users in the database. */
const rowsOf = (place: Place) => place.query("select * from users order by name");

describe("the user commands", () => {
  it("add users who can log in on a running server, and remove them with their tokens on every server", async () => {
    const place = await makeSqlitePlace();
    const [one, two] = [await startTokenServer(place), await startTokenServer(place)];
    await runCommand(place, ["user", "add", "ada"], `${password}\n`);
    await one.addUser("bob");
    const tokens = [await one.logIn("ada"), await two.logIn("ada")];
    const spared = await one.logIn("bob");
    for (const server of [one, two])
      for (const token of tokens) expect(await server.useToken(token)).toBe("ada");
    expect(await runCommand(place, ["user", "remove", "ada"])).toMatchObject({ code: 0, stderr: "" });
    for (const server of [one, two]) {
      for (const token of tokens) expect(await refusal(server.useToken(token))).toEqual(revoked);
      expect(await refusal(server.logIn("ada"))).toEqual(failed);
      expect(await server.useToken(spared)).toBe("bob");
    }
    expect((await rowsOf(place)).map(({ name }) => name)).toEqual(["bob"]);
  });

  it("change a password, end the tokens immediately on every server, and keep the role", async () => {
    const place = await makeSqlitePlace();
    const [one, two] = [await startTokenServer(place), await startTokenServer(place)];
    await one.addUser("eve", "auditor");
    const token = await one.logIn("eve");
    expect(await two.useToken(token)).toBe("eve");
    const [before] = await rowsOf(place);
    const result = await runCommand(place, ["user", "passwd", "eve"], `${otherPassword}\n`);
    expect(result).toMatchObject({ code: 0, stderr: "" });
    for (const server of [one, two]) {
      expect(await refusal(server.useToken(token))).toEqual(revoked);
      expect(await refusal(server.logIn("eve"))).toEqual(failed);
      expect(await server.useToken(await server.logIn("eve", otherPassword))).toBe("eve");
    }
    const [after] = await rowsOf(place);
    expect(after).toMatchObject({ name: "eve", role: "auditor", created_at_ms: before?.created_at_ms });
  });

  it("store only the password's scrypt hash, with a separate salt", async () => {
    const place = await makeSqlitePlace();
    await runCommand(place, ["store", "init"]);
    // A separate program computes the full hash; one run is enough to prove it.
    await runProgram(place, ["user", "add", "ada"], password);
    await runCommand(place, ["user", "add", "bob"], password);
    const rows = await rowsOf(place);
    for (const { name, password_hash } of rows) {
      const [scheme, logN, r, p, salt = "", hash] = String(password_hash).split("$");
      expect([scheme, logN, r, p]).toEqual(["scrypt", "17", "8", "1"]);
      expect(Buffer.from(salt, "base64")).toHaveLength(16);
      const parameters = name === "ada" ? { N: 2 ** 17, r: 8, p: 1, maxmem: 2 ** 28 } : leastScrypt;
      const expected = scryptSync(password, Buffer.from(salt, "base64"), 32, parameters);
      expect(hash).toBe(expected.toString("base64"));
    }
    expect(rows).toHaveLength(2);
    expect(new Set(rows.map(({ password_hash }) => String(password_hash).split("$")[4])).size).toBe(2);
    expect(JSON.stringify(rows)).not.toContain(password);
  });
});

describe("qsp user", { timeout }, () => {
  it.each([
    ["accepts 1024 bytes", "x".repeat(1024), 0],
    ["refuses 1025 bytes", "x".repeat(1025), 2],
    ["refuses 1026 bytes in 513 characters", "é".repeat(513), 2],
  ])("%s as a password, and prints none of it", async (_what, given, expected) => {
    const place = await makeSettings();
    const { code, stderr } = await runCommand(place, ["user", "add", "ada"], `${given}\n`);
    expect([code, countUsers(place)]).toEqual([expected, expected === 0 ? 1 : 0]);
    expect(stderr).not.toContain(given.slice(0, 10));
  });

  it("adds only one of two users with the same name at the same time", async () => {
    const place = await makeSettings();
    const results = await Promise.all(
      ["user", "admin"].map((role) => runProgram(place, ["user", "add", "ada", role], password)),
    );
    expect(results.map(({ code }) => code).sort()).toEqual([0, 2]);
    expect(countUsers(place)).toBe(1);
  });

  it("works on a new store, with files that only their owner can read", async () => {
    const parent = makeTemporaryDirectory();
    chmodSync(parent, 0o755);
    const directory = join(parent, "data");
    const place = { settings: ["--data-dir", directory] };
    await runCommand(place, ["store", "init"]);
    await runCommand(place, ["user", "add", "ada"], password);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    const modes = readdirSync(directory).map((file) => [file, statSync(join(directory, file)).mode & 0o077]);
    expect(modes.length).toBeGreaterThan(0);
    expect(modes.filter(([, mode]) => mode !== 0)).toEqual([]);
  });
});

it("qsp client add stores a hash of the secret, and never the secret itself", async () => {
  const place = await makeSqlitePlace();
  await runCommand(place, ["store", "init"]);
  const added = await runCommand(place, ["client", "add", "orders"]);
  expect([added.code, added.stdout]).toEqual([0, expect.stringMatching(/^[A-Za-z0-9_-]{43}\n$/)]);
  const secret = added.stdout.trim();
  expect(added.stderr).not.toContain(secret);
  const [row] = await place.query("select * from oauth_clients");
  expect(row?.secret_hash).toMatch(/^sha256\$[A-Za-z0-9+/]{43}=$/);
  expect(JSON.stringify(row)).not.toContain(secret);
  const { stdout } = await runCommand(place, ["client", "list"]);
  expect(stdout).not.toMatch(/sha256|\$/);
  for (const file of readdirSync(place.directory))
    expect(readFileSync(join(place.directory, file)).includes(secret)).toBe(false);
});

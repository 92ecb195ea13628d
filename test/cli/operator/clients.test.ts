/** qsp client add, secret, remove and list: which programs get access tokens, and from when on no more. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeStoreDirectory } from "../../support/empty-store.ts";
import { makeSqlitePlace } from "../../support/on-both.ts";
import { password } from "../../support/passwords.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import { secretOf, secretPattern } from "./client-secret.ts";
import { runCommand, runProgram } from "./command-line.ts";

const timeout = 180_000;
/** What a command prints that refuses: one sentence, and nothing on standard output. */
const refused = { code: 2, stdout: "", stderr: expect.stringMatching(/^qsp: [^\n]+\n$/) };

async function makeSettings() {
  const directory = await makeStoreDirectory();
  return { directory, settings: ["--data-dir", directory] };
}

describe("the commands about clients", () => {
  it("add a client, and list it with its rights", async () => {
    const place = await makeSqlitePlace();
    await runCommand(place, ["store", "init"]);
    await secretOf(
      place,
      ...["add", "orders", "--scope", "kms.read kms.sign", "--scope", "pqc.use,ledger:write"],
      ...["--audience", "https://ledger.example.com", "--resource", "urn:orders", "--exchange"],
      ...["--role", "auditor"],
    );
    const { code, stdout } = await runCommand(place, ["client", "list"]);
    expect(code).toBe(0);
    expect(stdout.replace(/since \S+;/, "since …;")).toBe(
      "orders  role auditor; since …; scopes: kms.read kms.sign pqc.use ledger:write; audiences: https://ledger.example.com; resources: urn:orders; may exchange tokens\n",
    );
  });

  it("store a hash of the secret, and the secret nowhere", async () => {
    const place = await makeSqlitePlace();
    await runCommand(place, ["store", "init"]);
    const secret = await secretOf(place, "add", "orders");
    const [row] = await place.query("select * from oauth_clients");
    expect(row?.secret_hash).toMatch(/^sha256\$[A-Za-z0-9+/]{43}=$/);
    expect(JSON.stringify(row)).not.toContain(secret);
    const { stdout } = await runCommand(place, ["client", "list"]);
    expect(stdout).not.toMatch(/sha256|\$/);
    for (const file of readdirSync(place.directory))
      expect(readFileSync(join(place.directory, file)).includes(secret)).toBe(false);
  });

  it("make a new secret, and remove a client", async () => {
    const place = await makeSqlitePlace();
    await runCommand(place, ["store", "init"]);
    const first = await secretOf(place, "add", "orders");
    expect(await secretOf(place, "secret", "orders")).not.toBe(first);
    expect(await runCommand(place, ["client", "remove", "orders"])).toMatchObject({ code: 0, stderr: "" });
    expect((await runCommand(place, ["client", "list"])).stdout).toMatch(/^There are no clients/);
  });

  it("give no name to a user and a client", async () => {
    const place = await makeSqlitePlace();
    await runCommand(place, ["store", "init"]);
    await secretOf(place, "add", "orders");
    expect(await runCommand(place, ["user", "add", "orders"], password)).toEqual(refused);
    expect((await runCommand(place, ["user", "add", "ada"], password)).code).toBe(0);
    expect(await runCommand(place, ["client", "add", "ada"])).toEqual(refused);
    expect(await runCommand(place, ["client", "add", "orders"])).toEqual(refused);
  });
});

describe("qsp client", { timeout }, () => {
  it.each([
    ["add", ""],
    ["add", "a b"],
    ["add", "a:b"],
    ["add", ".a"],
    ["add", "a\nb"],
    ["add", "a".repeat(129)],
    ["add", "schedule"],
    ["add", "orders", "--role", "root"],
    ["add", "orders", "--scope", "kms.everything"],
    ["add", "orders", "--scope", 'a"b'],
    ["add", "orders", "--scope", "a\\b"],
    ["add", "orders", "--audience", "https://exämple.com"],
    ["add", "orders", "--resource", "a\u0007"],
    ["add", "orders", "--audience", "https://ledger.example.com/#part"],
    ["add", "orders", "--resource", "https://ledger.example.com#"],
    ["add"],
    ["add", "a", "b"],
    ["secret", "nobody"],
    ["remove", "nobody"],
    ["rename", "orders"],
  ])("%s %j %s %s is refused with code 2 and a sentence", async (...words) => {
    const place = await makeSettings();
    expect(await runCommand(place, ["client", ...words])).toEqual(refused);
    expect((await runCommand(place, ["client", "list"])).stdout).not.toContain("role");
  });

  it.each([["add", "orders"], ["secret", "orders"], ["remove", "orders"], ["list"]])(
    "%s makes no store where there is none",
    async (...words) => {
      const directory = join(makeTemporaryDirectory(), "mistyped");
      expect(await runCommand({ settings: ["--data-dir", directory] }, ["client", ...words])).toEqual(
        refused,
      );
      expect(existsSync(directory)).toBe(false);
    },
  );

  it("adds one of two clients that are added under one name at once", async () => {
    const place = await makeSettings();
    await secretOf(place, "add", "first");
    const results = await Promise.all([1, 2].map(() => runProgram(place, ["client", "add", "orders"])));
    expect(results.map(({ code }) => code).sort()).toEqual([0, 2]);
    expect(results.map(({ stdout }) => secretPattern.test(stdout)).sort()).toEqual([false, true]);
  });

  it("makes a backup that does not have the secret in the clear", async () => {
    const place = await makeSettings();
    const secret = await secretOf(place, "add", "orders");
    const target = join(makeTemporaryDirectory(), "backup");
    expect((await runCommand(place, ["backup", target])).code).toBe(0);
    const files = readdirSync(join(target, ".."), { recursive: true, withFileTypes: true });
    const contents = files
      .filter((file) => file.isFile())
      .map((file) => readFileSync(join(file.parentPath, file.name)));
    expect(contents.length).toBeGreaterThan(0);
    expect(contents.filter((bytes) => bytes.includes(secret))).toEqual([]);
    expect(contents.some((bytes) => bytes.includes("orders"))).toBe(true);
  });
});

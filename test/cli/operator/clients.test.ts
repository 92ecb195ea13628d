/** qsp client add, secret, remove and list: which clients get access tokens, and when they no longer do. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeStoreDirectory } from "../../support/empty-store.ts";
import { makeSqlitePlace } from "../../support/on-both.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import { secretOf, secretPattern } from "./client-secret.ts";
import { runCommand, runProgram } from "./command-line.ts";

const timeout = 180_000;

async function makeSettings() {
  const directory = await makeStoreDirectory();
  return { directory, settings: ["--data-dir", directory] };
}

describe("the client commands", () => {
  it("store a hash of the secret, and never the secret itself", async () => {
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
});

describe("qsp client", { timeout }, () => {
  it("adds only one of two clients with the same name at the same time", async () => {
    const place = await makeSettings();
    await secretOf(place, "add", "first");
    const results = await Promise.all([1, 2].map(() => runProgram(place, ["client", "add", "orders"])));
    expect(results.map(({ code }) => code).sort()).toEqual([0, 2]);
    expect(results.map(({ stdout }) => secretPattern.test(stdout)).sort()).toEqual([false, true]);
  });

  it("creates a backup that does not contain the secret in plain text", async () => {
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

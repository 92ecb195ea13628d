/** qsp client add, secret, remove and list: which clients get access tokens, and when they no longer do. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeSqlitePlace } from "../../support/on-both.ts";
import { secretOf } from "./client-secret.ts";
import { runCommand } from "./command-line.ts";

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

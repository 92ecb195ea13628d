/** qsp client add, secret, remove and list: which programs get access tokens, and from when on no more. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { basicOf, postForm } from "../../../extensions/oauth/test/tools.ts";
import { readConfig } from "../../../src/config.ts";
import { serveApp } from "../../services/app-under-test.ts";
import { makeStoreDirectory } from "../../support/empty-store.ts";
import { describeStores, type MakePlace, type Place } from "../../support/on-both.ts";
import { password } from "../../support/passwords.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import { runCommand, runProgram } from "./command-line.ts";

const timeout = 180_000;
const secretPattern = /^[A-Za-z0-9_-]{43}\n$/;
/** What a command prints that refuses: one sentence, and nothing on standard output. */
const refused = { code: 2, stdout: "", stderr: expect.stringMatching(/^qsp: [^\n]+\n$/) };

async function makeSettings() {
  const directory = await makeStoreDirectory();
  return { directory, settings: ["--data-dir", directory] };
}

async function start({ settings }: Pick<Place, "settings">) {
  const flags = ["--port", "0", "--auth", "token", "--issuer-url", "https://id.example.com"];
  const app = await serveApp(readConfig([...flags, ...settings], {}));
  onTestFinished(async () => {
    app.server.destroy();
    await app.close();
  });
  const request = async (name: string, secret: string, form: Record<string, string> = {}) => {
    const all = { grant_type: "client_credentials", ...form };
    return postForm(app, "/oauth/token", all, basicOf(name, secret));
  };
  const use = async (token: string) =>
    (await fetch(`${app.url}/api/kms/keys`, { headers: { authorization: `Bearer ${token}` } })).status;
  return { request, use };
}

/** The secret that a command prints, and nothing else. */
async function secretOf(place: Pick<Place, "settings">, ...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand(place, ["client", ...words]);
  expect([code, stdout]).toEqual([0, expect.stringMatching(secretPattern)]);
  expect(stderr).not.toContain(stdout.trim());
  return stdout.trim();
}

describeStores("the commands about clients", (makePlace: MakePlace) => {
  it("add a client, which gets tokens of a server that runs, and list it with its rights", async () => {
    const place = await makePlace();
    const { request, use } = await start(place);
    const secret = await secretOf(
      place,
      ...["add", "orders", "--scope", "kms.read kms.sign", "--scope", "pqc.use,ledger:write"],
      ...[
        "--audience",
        "https://ledger.example.com",
        "--resource",
        "urn:orders",
        "--exchange",
        "--role",
        "auditor",
      ],
    );
    const { status, body } = await request("orders", secret);
    expect([status, body.scope]).toEqual([200, "kms.read kms.sign pqc.use ledger:write"]);
    expect(await use(body.access_token)).toBe(200);
    expect((await request("orders", secret, { resource: "https://ledger.example.com" })).status).toBe(200);
    const { code, stdout } = await runCommand(place, ["client", "list"]);
    expect(code).toBe(0);
    expect(stdout.replace(/since \S+;/, "since …;")).toBe(
      "orders  role auditor; since …; scopes: kms.read kms.sign pqc.use ledger:write; audiences: https://ledger.example.com; resources: urn:orders; may exchange tokens\n",
    );
  });

  it("store a hash of the secret, and the secret nowhere", async () => {
    const place = await makePlace();
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

  it("make a new secret, which ends the old one and all tokens at once", async () => {
    const place = await makePlace();
    const { request, use } = await start(place);
    const first = await secretOf(place, "add", "orders", "--scope", "kms.read");
    const { access_token: token } = (await request("orders", first)).body;
    expect(await use(token)).toBe(200);
    const second = await secretOf(place, "secret", "orders");
    expect(second).not.toBe(first);
    expect([(await request("orders", first)).status, await use(token)]).toEqual([401, 401]);
    expect(await use((await request("orders", second)).body.access_token)).toBe(200);
  });

  it("remove a client, and end its tokens at once", async () => {
    const place = await makePlace();
    const { request, use } = await start(place);
    const secret = await secretOf(place, "add", "orders", "--scope", "kms.read");
    const { access_token: token } = (await request("orders", secret)).body;
    expect(await use(token)).toBe(200);
    expect(await runCommand(place, ["client", "remove", "orders"])).toMatchObject({ code: 0, stderr: "" });
    expect([(await request("orders", secret)).status, await use(token)]).toEqual([401, 401]);
    expect((await runCommand(place, ["client", "list"])).stdout).toMatch(/^There are no clients/);
  });

  it("give no name to a user and a client", async () => {
    const place = await makePlace();
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

/** qsp client add, secret and remove: which programs get access tokens, and when they lose them. */
import { expect, it, onTestFinished } from "vitest";
import { readConfig } from "../../../src/config.ts";
import { secretOf } from "../../../test/cli/operator/client-secret.ts";
import { runCommand } from "../../../test/cli/operator/command-line.ts";
import { serveApp } from "../../../test/services/app-under-test.ts";
import { makeSqlitePlace, type Place } from "../../../test/support/on-both.ts";
import { basicOf, postForm } from "./tools.ts";

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

it("the client commands add a client to a running server, replace its secret and remove it", async () => {
  const place = await makeSqlitePlace();
  const { request, use } = await start(place);
  const audience = "https://ledger.example.com";
  const rights = ["--scope", "kms.read kms.sign", "--scope", "pqc.use,ledger:write", "--audience", audience];
  const first = await secretOf(place, "add", "orders", ...rights);
  const { status, body } = await request("orders", first);
  expect([status, body.scope]).toEqual([200, "kms.read kms.sign pqc.use ledger:write"]);
  expect((await request("orders", first, { resource: audience })).status).toBe(200);
  const token = body.access_token;
  expect(await use(token)).toBe(200);

  const second = await secretOf(place, "secret", "orders");
  expect(second).not.toBe(first);
  expect([(await request("orders", first)).status, await use(token)]).toEqual([401, 401]);
  const { access_token: next } = (await request("orders", second)).body;
  expect(await use(next)).toBe(200);

  expect(await runCommand(place, ["client", "remove", "orders"])).toMatchObject({ code: 0, stderr: "" });
  expect([(await request("orders", second)).status, await use(next)]).toEqual([401, 401]);
  expect((await runCommand(place, ["client", "list"])).stdout).toMatch(/^There are no clients/);
  await secretOf(place, "add", "orders", ...rights);
  expect([await use(token), await use(next)]).toEqual([401, 401]);
});

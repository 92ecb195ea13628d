/** `qsp wireguard join`, `status` and `leave` with a server that requires tokens. */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { beforeAll, describe, expect, it } from "vitest";
import { AuthorizationService } from "#gen/oauth/authorization_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { readConfig } from "../../../src/config.ts";
import { qsp, qspDone, qspJson, timeout } from "../../../test/cli/qsp.ts";
import { connectWithToken, openConnections, startUnderTest } from "../../../test/services/app-under-test.ts";
import { endAfterAll } from "../../../test/support/at-end.ts";
import { password } from "../../../test/support/passwords.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { connectAgent, random32 } from "./agent.ts";

const atEnd = endAfterAll();
const cwd = makeTemporaryDirectory(atEnd);
let url: string;

const asClient = ["--client", "laptop", "--client-secret-file", "laptop.secret"];
const asUser = ["--username", "ada", "--password-file", "password"];

/** Connects as a client. */
async function connectAs(client: string) {
  const { grpc, disconnect } = openConnections(url);
  const { accessToken } = await createClient(AuthorizationService, grpc).issueToken({
    grantType: "client_credentials",
    clientId: client,
    clientSecret: readFileSync(join(cwd, `${client}.secret`), "utf8").trim(),
  });
  disconnect();
  return connectWithToken(url, accessToken);
}

beforeAll(async () => {
  const env = { QSP_DATA_DIR: join(cwd, "data") };
  await qspDone(["store", "init"], { cwd, env });
  await qspDone(["user", "add", "ada"], { cwd, env, stdin: `${password}\n` });
  writeFileSync(join(cwd, "password"), `${password}\n`);
  const scopes = { laptop: ["vpn.write wireguard.peer"], gateway: ["wireguard.gateway", "--role", "admin"] };
  for (const [name, scope] of Object.entries(scopes)) {
    const secret = await qspDone(["client", "add", name, "--scope", ...scope], { cwd, env });
    writeFileSync(join(cwd, `${name}.secret`), secret);
  }
  const flags = ["--auth", "token", "--issuer-url", "http://localhost"];
  const config = readConfig(["--port", "0", "--data-dir", env.QSP_DATA_DIR, ...flags], {});
  ({ url } = await startUnderTest(config, atEnd));
  const agent = await connectAgent(await connectAs("gateway"));
  atEnd(async () => agent.close());
}, timeout);

const at = () => ({ cwd, url });

function joinTo(out: string, ...more: readonly string[]): string[] {
  return ["wireguard", "join", "--wireguard-public-key", random32().toBase64(), "--out", out, ...more];
}

describe("qsp wireguard", { timeout }, () => {
  it.each([
    ["a client", asClient],
    ["a user", asUser],
  ])("joins, shows the peer and leaves as %s", async (_, credentials) => {
    const printed = await qspDone(joinTo("peer.json", ...credentials), at());
    expect(printed).toContain("Endpoint = vpn.example.com:51820");
    expect(statSync(join(cwd, "peer.json")).mode & 0o777).toBe(0o600);
    const { tunnelId } = JSON.parse(readFileSync(join(cwd, "peer.json"), "utf8"));
    expect(await qspDone(["wireguard", "status", ...credentials], at())).toMatch(
      new RegExp(`is connected\\.\nTUNNEL .*\n${tunnelId} .* never\n$`),
    );
    const left = await qspDone(["wireguard", "leave", "--state", "peer.json", ...credentials], at());
    expect(left).toBe(`${tunnelId} is REMOVED.\n`);
    expect(existsSync(join(cwd, "peer.json"))).toBe(false);
  });

  it("refuses commands without credentials", async () => {
    for (const args of [joinTo("peer.json"), ["wireguard", "status"]])
      expect(await qsp(args, at())).toMatchObject({
        code: 3,
        stderr: expect.stringContaining("TOKEN_MISSING"),
      });
  });

  it("names the way to a new tunnel when the peer's tunnel was disconnected", async () => {
    const { tunnelId } = await qspJson(joinTo("gone.json", ...asClient), at());
    const vpn = createClient(VpnService, await connectAs("laptop"));
    await vpn.disconnect({ tunnelId: String(tunnelId) });
    const advice = "remove the peer's file, and create a new one with qsp wireguard join";
    expect(await qsp(["wireguard", "leave", "--state", "gone.json", ...asClient], at())).toMatchObject({
      code: 3,
      stderr: `qsp: tunnel ${tunnelId} does not exist (NOT_FOUND, TUNNEL_NOT_FOUND); ${advice}\n`,
    });
  });

  it("leaves neither a directory nor a tunnel if the file cannot be written", async () => {
    const { code, stderr } = await qsp(joinTo("none/peer.json", ...asUser), at());
    const sentence = "none/peer.json cannot be written: the directory none does not exist; create it first";
    expect([code, stderr]).toEqual([2, `qsp: ${sentence}\n`]);
    expect(readdirSync(cwd)).not.toContain("none");
    // The server removes the record within a second.
    const status = () => qspDone(["wireguard", "status", ...asUser], at());
    await expect.poll(status, { timeout }).toContain("There are no peers");
  });

  it("overwrites no file", async () => {
    const stderr = "qsp: password already exists; name another file for --out\n";
    expect(await qsp(joinTo("password", ...asUser), at())).toMatchObject({ code: 2, stderr });
  });
});

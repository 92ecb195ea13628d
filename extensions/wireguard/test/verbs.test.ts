/** `qsp wireguard join`, `status` and `leave` with a server that requires tokens. */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { beforeAll, describe, expect, it } from "vitest";
import { AuthorizationService } from "#gen/oauth/authorization_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { readConfig } from "../../../src/config.ts";
import { qsp, qspDone, qspJson, timeout } from "../../../test/cli/qsp.ts";
import { openConnections, serveApp } from "../../../test/services/app-under-test.ts";
import { endAfterAll } from "../../../test/support/at-end.ts";
import { password } from "../../../test/support/passwords.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { connectAgent, random32 } from "./agent.ts";

const atEnd = endAfterAll();
const cwd = makeTemporaryDirectory(atEnd);
let url: string;

const asClient = ["--client", "laptop", "--client-secret-file", "laptop.secret"];
const asUser = ["--username", "ada", "--password-file", "password"];

/** Requests a token as a client. */
async function tokenOf(client: string): Promise<string> {
  const { grpc, disconnect } = openConnections(url);
  try {
    const { accessToken } = await createClient(AuthorizationService, grpc).issueToken({
      grantType: "client_credentials",
      clientId: client,
      clientSecret: readFileSync(join(cwd, `${client}.secret`), "utf8").trim(),
    });
    return accessToken;
  } finally {
    disconnect();
  }
}

function transportWith(token: string) {
  return createGrpcTransport({
    baseUrl: url,
    idleConnectionTimeoutMs: 100,
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${token}`);
        return next(request);
      },
    ],
  });
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
  const app = await serveApp(readConfig(["--port", "0", "--data-dir", env.QSP_DATA_DIR, ...flags], {}));
  url = app.url;
  atEnd(async () => {
    app.server.destroy();
    await app.close();
  });
  const agent = await connectAgent(transportWith(await tokenOf("gateway")));
  atEnd(async () => agent.close());
}, timeout);

function joinTo(out: string, ...more: readonly string[]): string[] {
  return ["wireguard", "join", "--wireguard-public-key", random32().toBase64(), "--out", out, ...more];
}

describe("qsp wireguard", { timeout }, () => {
  it.each([
    ["a client", asClient],
    ["a user", asUser],
  ])("joins, shows the peer and leaves as %s", async (_, credentials) => {
    const printed = await qspDone(joinTo("peer.json", ...credentials), { cwd, url });
    expect(printed).toContain("Endpoint = vpn.example.com:51820");
    expect(statSync(join(cwd, "peer.json")).mode & 0o777).toBe(0o600);
    const { tunnelId } = JSON.parse(readFileSync(join(cwd, "peer.json"), "utf8"));
    expect(await qspDone(["wireguard", "status", ...credentials], { cwd, url })).toMatch(
      new RegExp(`is connected\\.\nTUNNEL .*\n${tunnelId} .* never\n$`),
    );
    const left = await qspDone(["wireguard", "leave", "--state", "peer.json", ...credentials], { cwd, url });
    expect(left).toBe(`${tunnelId} is REMOVED.\n`);
    expect(existsSync(join(cwd, "peer.json"))).toBe(false);
  });

  it("refuses commands without credentials", async () => {
    for (const args of [joinTo("peer.json"), ["wireguard", "status"]])
      expect(await qsp(args, { cwd, url })).toMatchObject({
        code: 3,
        stderr: expect.stringContaining("TOKEN_MISSING"),
      });
  });

  it("names the way to a new tunnel when the peer's tunnel was disconnected", async () => {
    const { tunnelId } = await qspJson(joinTo("gone.json", ...asClient), { cwd, url });
    await createClient(VpnService, transportWith(await tokenOf("laptop"))).disconnect({
      tunnelId: String(tunnelId),
    });
    expect(
      await qsp(["wireguard", "leave", "--state", "gone.json", ...asClient], { cwd, url }),
    ).toMatchObject({
      code: 3,
      stderr: `qsp: tunnel ${tunnelId} does not exist (NOT_FOUND, TUNNEL_NOT_FOUND); remove the peer's file, and create a new one with qsp wireguard join\n`,
    });
  });

  it("leaves neither a directory nor a tunnel if the file cannot be written", async () => {
    const { code, stderr } = await qsp(joinTo("none/peer.json", ...asUser), { cwd, url });
    expect([code, stderr]).toEqual([
      2,
      "qsp: none/peer.json cannot be written: the directory none does not exist; create it first\n",
    ]);
    expect(readdirSync(cwd)).not.toContain("none");
    // The server removes the record within a second.
    const status = () => qspDone(["wireguard", "status", ...asUser], { cwd, url });
    await expect.poll(status, { timeout }).toContain("There are no peers");
  });

  it("overwrites no file", async () => {
    expect(await qsp(joinTo("password", ...asUser), { cwd, url })).toMatchObject({
      code: 2,
      stderr: "qsp: password already exists; name another file for --out\n",
    });
  });
});

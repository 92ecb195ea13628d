import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { qsp, qspDone, qspJson, type RunOptions, timeout, useServer } from "./qsp.ts";

const server = useServer();

async function up(...options: string[]) {
  const place = server.place();
  const { tunnelId } = await qspJson(["tunnel", "up", "laptop", ...options], place);
  return { ...place, tunnelId: String(tunnelId) };
}

const stateOf = ({ cwd }: RunOptions) => JSON.parse(readFileSync(join(cwd, "tunnel.json"), "utf8"));

async function tunnelOf({ tunnelId }: { readonly tunnelId: string }) {
  const { tunnels } = await server.client(VpnService).listTunnels({});
  return tunnels.find((tunnel) => tunnel.tunnelId === tunnelId);
}

describe("qsp tunnel", { timeout }, () => {
  it("comes up with a key of its own and a handshake, in a file for its owner alone", async () => {
    const place = await up();
    expect(await tunnelOf(place)).toMatchObject({ peerName: "laptop", sessionStatus: "ESTABLISHED" });
    expect(statSync(join(place.cwd, "tunnel.json")).mode & 0o777).toBe(0o600);
    expect(stateOf(place)).toMatchObject({
      tunnelId: place.tunnelId,
      gatewayIdentityPem: (await server.client(VpnService).getGatewayInfo({})).identityPublicKeyPem,
    });
  });

  it("takes only the gateway's identity that it is told", async () => {
    const place = server.place();
    const { identityPublicKeyPem } = await server.client(VpnService).getGatewayInfo({});
    writeFileSync(join(place.cwd, "genuine.pub"), identityPublicKeyPem);
    await qspDone(["keygen", "other"], place);
    const line = (file: string) => ["tunnel", "up", "--gateway-identity", file];
    expect(await qsp(line("other.pub"), place)).toMatchObject({ code: 1 });
    expect(existsSync(join(place.cwd, "tunnel.json"))).toBe(false);
    await qspDone(line("genuine.pub"), place);
  });

  it("pings: packets there and back, each sealed on one side and opened on the other", async () => {
    const place = await up();
    const answer = await qspJson(["tunnel", "ping", "--count", "3", "--size", "1000"], place);
    expect(answer).toMatchObject({ tunnelId: place.tunnelId, packets: 3, size: 1000 });
    expect(await tunnelOf(place)).toMatchObject({ packetCount: 6, byteCount: 6000 });
  });

  it("shows that the gateway refuses a packet that comes again", async () => {
    const place = await up();
    expect(await qspJson(["tunnel", "ping", "--count", "1", "--replay"], place)).toMatchObject({
      replay: "PACKET_REPLAYED",
    });
  });

  it("sends a file in packets of 64 KiB, which the gateway finds as they were", async () => {
    const place = await up();
    writeFileSync(join(place.cwd, "file"), Buffer.alloc(1_000_000, "packets"));
    expect(await qspJson(["tunnel", "send", "file"], place)).toMatchObject({ bytes: 1_000_000 });
    expect(await tunnelOf(place)).toMatchObject({ byteCount: 1_000_000 });
  });

  it("sends standard input", async () => {
    const place = await up();
    const stdin = "to the gateway";
    expect(await qspJson(["tunnel", "send", "-"], { ...place, stdin })).toMatchObject({
      packets: 1,
      bytes: 14,
    });
  });

  it("does not trust a gateway whose keys are others than when it came up", async () => {
    const place = await up();
    await qspDone(["keygen", "other"], place);
    const other = readFileSync(join(place.cwd, "other.pub"), "utf8");
    writeFileSync(
      join(place.cwd, "tunnel.json"),
      JSON.stringify({ ...stateOf(place), gatewayIdentityPem: other }),
    );
    expect(await qsp(["tunnel", "ping"], place)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("sign"),
    });
  });

  it("does not trust a gateway that has another key than its own for the session", async () => {
    const place = await up();
    await qspDone(["keygen", "other", "--algorithm", "ML-KEM-1024"], place);
    const other = readFileSync(join(place.cwd, "other.pub"), "utf8");
    writeFileSync(
      join(place.cwd, "tunnel.json"),
      JSON.stringify({ ...stateOf(place), gatewayKemPem: other }),
    );
    expect(await qsp(["tunnel", "ping"], place)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("session key"),
    });
  });

  it("goes down: the tunnel and its file are gone", async () => {
    const place = await up();
    expect(await qspDone(["tunnel", "down"], place)).toBe(`${place.tunnelId} is REMOVED.\n`);
    expect(existsSync(join(place.cwd, "tunnel.json"))).toBe(false);
    expect(await tunnelOf(place)).toBeUndefined();
  });

  it("leaves a tunnel that is up where another is to come up", async () => {
    const place = await up();
    const before = stateOf(place);
    expect(await qsp(["tunnel", "up"], place)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("tunnel.json"),
    });
    expect(stateOf(place)).toEqual(before);
  });

  it("says that a tunnel is gone which the gateway no longer has", async () => {
    const place = await up();
    await server.client(VpnService).disconnect({ tunnelId: place.tunnelId });
    expect(await qsp(["tunnel", "ping"], place)).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("TUNNEL_NOT_FOUND"),
    });
  });

  it.each([
    ["--count", "0"],
    ["--count", "x"],
    ["--size", "65537"],
  ])("refuses %s %s", async (option, value) => {
    const { code, stderr } = await qsp(["tunnel", "ping", option, value], server.place());
    expect({ code, isNamed: stderr.includes(option) }).toEqual({ code: 2, isNamed: true });
  });
});

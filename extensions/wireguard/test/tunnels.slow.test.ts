/** Two minutes: the time after which WireGuard renews a session. Everything else happens meanwhile. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { endAfterAll } from "../../../test/support/at-end.ts";
import { openInterface } from "../interface.ts";
import { buildLab, done, type End, type Followed, type Lab, missing, needs } from "./lab.ts";

const timeout = 300_000;
const proven = /a handshake used the new pre-shared key/;

/** Length of WireGuard's first handshake message in bytes. */
const initiationBytes = 148;

// One peer's connection lasts from the first test to the last one.
describe.skipIf(missing.length > 0)(`a gateway with peers${needs}`, { timeout, shuffle: false }, () => {
  const atEnd = endAfterAll();
  let lab: Lab;
  let server: Followed;
  let gatewayAgent: Followed;
  /** A peer with the timing of users, whose connection lasts from the first to the last test. */
  let steady: { readonly end: End; readonly agent: Followed; readonly traffic: Followed };
  /** A peer that renews its key every few seconds. */
  let quick: { readonly end: End; agent: Followed; readonly state: string; readonly address: string };

  beforeAll(async () => {
    if (missing.length > 0) return;
    lab = await buildLab(atEnd);
    server = await lab.startServer();
    gatewayAgent = await lab.startGatewayAgent();
  }, timeout);

  async function startPeer(isQuick: boolean) {
    const end = await lab.makeEnd();
    const { state, address } = await lab.join(end);
    await end.start(address);
    const agent = await lab.startPeerAgent(end, state, isQuick);
    return { end, agent, state, address };
  }

  it("carries traffic after the first agreement", async () => {
    const peer = await startPeer(false);
    await peer.agent.next(proven, 0);
    steady = { ...peer, traffic: await lab.startTraffic(peer.end) };
  });

  it.each(["a wrong", "an empty"])(
    "makes no handshake with a peer that has %s pre-shared key",
    async (kind) => {
      const end = await lab.makeEnd();
      const { address } = await lab.join(end);
      await end.start(address);
      const keyFile = join(lab.cwd, "wrong-key");
      writeFileSync(keyFile, kind === "an empty" ? "" : await done("wg", ["genpsk"]));
      const place = "endpoint 192.0.2.1:51820 allowed-ips 10.8.0.1/32 persistent-keepalive 1".split(" ");
      const peer = ["peer", lab.gateway.publicKey, "preshared-key", keyFile, ...place];
      await done("wg", ["set", end.interfaceName, ...peer]);
      const sent = async () => Number((await end.show("transfer")).split(" ")[1]);
      // The gateway had the time to answer the first one when the second is sent.
      await expect.poll(sent, { interval: 500 }).toBeGreaterThanOrEqual(2 * initiationBytes);
      expect(await end.show("latest-handshakes")).toBe("0");
    },
  );

  it("can be changed and read through the program wg, too", async () => {
    const end = await lab.makeEnd();
    await end.start("10.8.255.1");
    const viaWg = openInterface(end.interfaceName, lab.cwd);
    const presharedKey = new Uint8Array(32).fill(7);
    const place = { endpoint: "192.0.2.1:51820", allowedIps: ["10.8.0.1/32"], keepaliveSeconds: 5 };
    const peer = { publicKey: lab.gateway.publicKey, presharedKey, ...place };
    await viaWg.change([{ kind: "set", ...peer }]);
    await viaWg.change([{ kind: "renew", ...peer }]);
    const found = await openInterface(end.interfaceName).readPeers();
    expect(await viaWg.readPeers()).toEqual(found);
    expect(found).toMatchObject([{ publicKey: lab.gateway.publicKey, presharedKey }]);
    expect(await viaWg.readPublicKey()).toBe(end.publicKey);
    await viaWg.change([{ kind: "remove", publicKey: lab.gateway.publicKey }]);
    expect(await viaWg.readPeers()).toEqual([]);
  });

  it("renews a key when its agent was killed and started again", async () => {
    quick = await startPeer(true);
    await quick.agent.next(proven, 0);
    await quick.agent.next(proven);
    await quick.agent.stop("SIGKILL");
    quick.agent = await lab.startPeerAgent(quick.end, quick.state, true);
    await quick.agent.next(proven, 0);
  });

  it("renews a key when the gateway's agent was killed and started again", async () => {
    await gatewayAgent.stop("SIGKILL");
    gatewayAgent = await lab.startGatewayAgent();
    await quick.agent.next(proven);
  });

  it("renews a key when the server was killed and started again", async () => {
    const from = quick.agent.lines.length;
    await server.stop("SIGKILL");
    await quick.agent.next(/the agreement failed/, from);
    server = await lab.startServer();
    await quick.agent.next(/the agreement works again/, from);
    await quick.agent.next(proven);
  });

  it("has the peer again when its wireguard-go was killed and started again", async () => {
    const from = quick.agent.lines.length;
    await quick.end.kill();
    await quick.agent.next(/interface .* failed/, from);
    await quick.end.start(quick.address);
    await quick.agent.next(/interface .* works again/, from);
    await quick.agent.next(proven);
    const traffic = await lab.startTraffic(quick.end);
    await traffic.stop();
  });

  it("has renewed the session under traffic after two minutes, and lost no connection", async () => {
    const { agent, traffic, end } = steady;
    const provenTwice = () => agent.lines.filter((line) => proven.test(line)).length;
    await expect.poll(provenTwice, { interval: 500, timeout: 200_000 }).toBeGreaterThanOrEqual(2);
    expect(agent.lines.join("\n")).not.toMatch(/restored|random/);
    await traffic.next(/echoed/);
    expect(traffic.process.exitCode).toBeNull();
    const shown = await done("wg", ["show", lab.gateway.interfaceName, "preshared-keys"]);
    expect(shown.split("\n")).toContain(`${end.publicKey}\t${await end.show("preshared-keys")}`);
  });

  it("prints no key", async () => {
    const key = await steady.end.show("preshared-keys");
    const printed = [server, gatewayAgent, steady.agent, quick.agent]
      .flatMap(({ lines }) => lines)
      .join("\n");
    for (const form of [key, Buffer.from(key, "base64").toString("hex")]) expect(printed).not.toContain(form);
  });
});

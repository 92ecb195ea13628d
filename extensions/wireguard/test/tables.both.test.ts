/** The table of this extension: what must never change, and how both databases keep its records. */
import { expect, it } from "vitest";
import { describeOnBoth } from "../../../test/services/app-under-test.ts";
import { pinSteps } from "../../../test/support/pin-steps.ts";
import { outcomesOf } from "../../../test/support/refusal.ts";
import { wireguardTables } from "../tables.ts";
import { connectAgent, joinPeer, random32, startAgreement, type TestPeer } from "./agent.ts";
import { startIn, type WireguardServer } from "./wireguard-server.ts";

pinSteps([wireguardTables], {
  sqlite: { "0009-wireguard": "efc35700304d9590" },
  postgres: { "0009-wireguard": "33f121f58c6651be" },
});

async function confirmEpoch(server: WireguardServer, peer: TestPeer, epoch: number): Promise<void> {
  const { tunnelId, peerConfirmation } = await startAgreement(server.wireguard, peer, epoch);
  await server.wireguard.confirm({ tunnelId, epoch, confirmation: peerConfirmation });
}

describeOnBoth("the list of WireGuard peers", startIn, (start) => {
  it("has them in order of registration, in pages, with their epochs", async () => {
    const server = await start();
    await connectAgent(server.transport);
    const peers: TestPeer[] = [];
    for (let i = 0; i < 3; i++) peers.push(await joinPeer(server.transport));
    const epoch = Date.now();
    for (const peer of peers.slice(1)) await confirmEpoch(server, peer, epoch);
    const first = await server.wireguard.listPeers({ pageSize: 2 });
    const second = await server.wireguard.listPeers({ pageSize: 2, pageToken: first.nextPageToken });
    const listed = [...first.peers, ...second.peers];
    expect(listed.map(({ tunnelId }) => tunnelId)).toEqual(peers.map(({ tunnelId }) => tunnelId));
    expect(listed.map(({ lastEpoch }) => lastEpoch)).toEqual([0, epoch, epoch]);
    expect([first.totalSize, second.nextPageToken]).toEqual([3, ""]);
  });

  it("has a WireGuard key once, even if two tunnels register it concurrently", async () => {
    const server = await start();
    const agent = await connectAgent(server.transport);
    const peers = [await joinPeer(server.transport), await joinPeer(server.transport)];
    const wireguardPublicKey = random32();
    const calls = peers.map(({ tunnelId }) => server.wireguard.registerKey({ tunnelId, wireguardPublicKey }));
    const taken = { code: "AlreadyExists", reason: "WIREGUARD_KEY_TAKEN" };
    expect(await outcomesOf(calls)).toEqual({ answered: 1, refusals: [taken] });
    const key = Buffer.from(wireguardPublicKey);
    const holders = () =>
      [...agent.peers.values()].filter((peer) => key.equals(peer.wireguardPublicKey)).length;
    await expect.poll(holders).toBe(1);
    expect((await server.wireguard.listPeers({})).totalSize).toBe(2);
  });
});

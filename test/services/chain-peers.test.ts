import { once } from "node:events";
import http2 from "node:http2";
import { type AddressInfo, createServer, type Server } from "node:net";
import { promisify } from "node:util";
import type { ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { expect, it, onTestFinished } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { expectTimeSince } from "../support/times.ts";
import { readPages } from "./answers.ts";
import { addBlocks } from "./chain.ts";
import { describeService } from "./service-server.ts";

/** Lets a server listen on a free port, and returns its address. */
async function listen(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Returns a local address where nothing listens. */
async function closedAddress(): Promise<string> {
  const server = createServer();
  const address = await listen(server);
  server.close();
  await once(server, "close");
  return address;
}

describeService("BlockchainService.ConnectPeer", BlockchainService, (start, shared) => {
  it("stores a peer's chain height, and when the peer was seen", async () => {
    const [{ client }, peer] = [await start(), await start()];
    await peer.client.registerNode({});
    await addBlocks(peer.client, 2);
    const beforeMs = Date.now();
    const { peer: first } = await client.connectPeer({ address: peer.authority });
    expect(first).toMatchObject({ peerStatus: "CONNECTED", height: 3 });
    expectTimeSince(beforeMs, first?.lastSeenAt);
    await addBlocks(peer.client, 1);
    expect((await client.connectPeer({ address: peer.authority })).peer?.height).toBe(4);
    await peer.close();
    const { peer: gone } = await client.connectPeer({ address: peer.authority });
    expect(gone).toMatchObject({ peerStatus: "UNREACHABLE", height: 4 });
    expect(gone?.lastSeenAt).toBeDefined();
    expect(await client.listPeers({})).toMatchObject({ peers: [gone], totalSize: 1 });
  });

  it("returns UNREACHABLE for a port without a listener", async () => {
    const { client } = await shared();
    const address = await closedAddress();
    const { peer } = await client.connectPeer({ address });
    expect(peer).toMatchObject({ address, peerStatus: "UNREACHABLE" });
    expect([peer?.height, peer?.lastSeenAt]).toEqual([undefined, undefined]);
  });

  it("returns UNREACHABLE for a peer that reports no possible height, and leaves no connection open", async () => {
    const { client } = await shared();
    const heights = [0, -1, 1.5, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY];
    const getHealth = () => ({ chainLength: heights.shift() ?? 1 });
    const routes = (router: ConnectRouter) => router.service(BlockchainService, { getHealth });
    const peer = http2.createServer(connectNodeAdapter({ routes }));
    onTestFinished(() => void peer.close());
    const address = await listen(peer);
    const shown: unknown[] = [];
    while (heights.length > 0) shown.push((await client.connectPeer({ address })).peer);
    expect(shown).toEqual(shown.map(() => expect.objectContaining({ peerStatus: "UNREACHABLE" })));
    expect((await client.connectPeer({ address })).peer).toMatchObject({ height: 1 });
    await expect.poll(() => promisify(peer.getConnections).call(peer)).toBe(0);
  });

  it("lists peers in order of first connection, page by page", async () => {
    const { client } = await start();
    const addresses: string[] = [];
    for (let i = 0; i < 3; i += 1) addresses.push(await closedAddress());
    for (const address of [...addresses, ...addresses.toReversed()]) await client.connectPeer({ address });
    const pages = await readPages(
      (pageToken) => client.listPeers({ pageSize: 2, pageToken }),
      ({ peers }) => peers.map(({ address }) => address),
    );
    expect(pages).toEqual({ rows: [...new Set(addresses)], sizes: [2, 1], totals: [3] });
  });
});

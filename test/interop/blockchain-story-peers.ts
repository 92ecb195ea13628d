/** The chapter of a story in which servers call each other. */
import { once as onceEmitted } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Peer } from "#gen/blockchain/blockchain_service_pb.ts";
import { present } from "../services/answers.ts";
import { refusal } from "../support/refusal.ts";
import { invalid, reused } from "../support/refusals.ts";
import type { Stage } from "./blockchain-story.ts";

export function tellOfPeers({ chain, past, length, nextUrl, once }: Stage): void {
  describe("ConnectPeer", () => {
    const [gate, wall] = [openGate(), openGate()];
    // A peer keeps the place of its first connection.
    const peers = new Map<string, Peer>();
    const keep = (peer: Peer): void => void peers.set(peer.address, peer);
    beforeAll(() => past().peers.forEach(keep));

    const connected = (address: string, { lastSeenAt }: Peer) => ({
      $typeName: "blockchain.Peer",
      address,
      peerStatus: "CONNECTED",
      height: length(),
      lastSeenAt,
    });

    it("connects a server at its own address, and tells how long its chain is and when it was seen", async () => {
      const address = new URL(nextUrl()).host;
      const before = Date.now();
      const peer = present((await chain.connectPeer({ address })).peer);
      expect(peer).toEqual(connected(address, peer));
      expect(timestampDate(present(peer.lastSeenAt)).getTime()).toSatisfy(
        (seenAtMs: number) => seenAtMs >= before && seenAtMs <= Date.now(),
      );
      keep(peer);
    });

    it("remembers how long the chain of a peer was that is gone", async () => {
      gate.leadTo(new URL(nextUrl()));
      const address = await gate.address;
      const before = present((await chain.connectPeer({ address }, once("peer"))).peer);
      expect(before).toEqual(connected(address, before));
      gate.shut();
      const { peer: after } = await chain.connectPeer({ address });
      expect(after).toEqual({ ...before, peerStatus: "UNREACHABLE" });
      keep(present(after));
    });

    it("with an Idempotency-Key answers as the first time, and is refused if another request had the key", async () => {
      const address = await gate.address;
      const { peer } = await chain.connectPeer({ address }, once("peer"));
      expect(peer).toEqual({ ...peers.get(address), peerStatus: "CONNECTED" });
      const other = chain.connectPeer({ address: await wall.address }, once("peer"));
      expect(await refusal(other)).toEqual(reused);
    });

    it("answers UNREACHABLE for a peer that never spoke", async () => {
      const address = await wall.address;
      // The gate of an earlier story may have had the same port.
      const known = peers.get(address);
      const { peer } = await chain.connectPeer({ address });
      expect(peer).toEqual({
        $typeName: "blockchain.Peer",
        ...known,
        address,
        peerStatus: "UNREACHABLE",
      });
      keep(present(peer));
    });

    it("leaves a list of peers in the order of their first connection, page by page", async () => {
      const pageSize = peers.size - 1;
      const page = await chain.listPeers({ pageSize });
      const rest = await chain.listPeers({ pageSize, pageToken: page.nextPageToken });
      const listed = [...peers.values()];
      const list = { $typeName: "blockchain.ListPeersResponse", status: "success", totalSize: peers.size };
      const { nextPageToken } = page;
      expect(page).toEqual({ ...list, peers: listed.slice(0, -1), nextPageToken });
      expect(rest).toEqual({ ...list, peers: listed.slice(-1), nextPageToken: "" });
      const { code, reason } = invalid();
      expect(await refusal(chain.getChain({ pageToken: nextPageToken }))).toEqual({ code, reason });
    });
  });
}

/** An address of its own that leads to a server until it closes. Then it refuses connections. */
function openGate() {
  let target: URL | undefined;
  const open = new Set<Socket>();
  const gate = createServer((socket) => {
    open.add(socket);
    socket.on("error", () => {});
    if (target === undefined) return void socket.destroy();
    const onward = connect(Number(target.port), target.hostname);
    onward.on("error", () => {});
    socket.on("close", () => onward.destroy());
    onward.on("close", () => socket.destroy());
    socket.pipe(onward).pipe(socket);
  });
  const { promise: address, resolve } = Promise.withResolvers<string>();
  beforeAll(async () => {
    await onceEmitted(gate.listen(0, "127.0.0.1"), "listening");
    const bound = gate.address();
    resolve(`127.0.0.1:${typeof bound === "object" ? bound?.port : ""}`);
  });
  const shut = (): void => {
    target = undefined;
    for (const socket of open) socket.destroy();
  };
  afterAll(() => {
    shut();
    gate.close();
  });
  return {
    address,
    leadTo: (url: URL): void => {
      target = url;
    },
    shut,
  };
}

import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import type { ChainParts } from "./register-node.ts";
import type { Peer } from "./store.ts";

/** Milliseconds that a peer has to answer. */
const peerMs = 3000;

/** Calls another server of the service over gRPC, and remembers how far its chain is. */
export async function connectPeer({ store, chain, now }: ChainParts, address: string): Promise<Peer> {
  const height = await askHeight(address);
  const before = await chain.findPeer(address);
  const peer: Peer =
    height === undefined
      ? { address, isConnected: false, height: before?.height, lastSeenAt: before?.lastSeenAt }
      : { address, isConnected: true, height, lastSeenAt: now() };
  await store.write((transaction) => chain.savePeer(transaction, peer));
  return peer;
}

/** @returns undefined if nobody answers, or somebody who is no such server */
async function askHeight(address: string): Promise<number | undefined> {
  const transport = createGrpcTransport({ baseUrl: `http://${address}`, readMaxBytes: 65_536 });
  try {
    const { chainLength } = await createClient(BlockchainService, transport).getHealth(
      {},
      { timeoutMs: peerMs },
    );
    return chainLength;
  } catch {
    return undefined;
  }
}

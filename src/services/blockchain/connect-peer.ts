import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import {
  BlockchainService,
  type ConnectPeerRequest,
  ConnectPeerResponseSchema,
  type PeerSchema,
} from "#gen/blockchain/blockchain_service_pb.ts";
import { OutgoingConnection } from "../../http/outgoing-connection.ts";
import type { CallerInput } from "../../identity/principal.ts";
import { messageCodec } from "../../records/idempotency.ts";
import { type Peer, peerQuota } from "./peer-store.ts";
import type { ChainDeps } from "./register-node.ts";

/** Timeout for a peer's answer. */
const peerMs = 3000;

/**
 * Calls another server of this service over gRPC and stores its chain height.
 *
 * @throws IDEMPOTENCY_KEY_REUSED, QUOTA_EXCEEDED
 */
export function connectPeer(
  { store, chain, now }: ChainDeps,
  { address }: ConnectPeerRequest,
  { owner, idempotentCall }: CallerInput,
) {
  return store.runIdempotent(idempotentCall, messageCodec(ConnectPeerResponseSchema), async (write) => {
    if ((await chain.peers.find(address)) === undefined) await store.requireRoom(peerQuota, owner);
    const height = await askHeight(address);
    const at = now();
    return write(async (transaction) => {
      const before = await chain.peers.find(address, transaction.db);
      const peer: Peer =
        height === undefined
          ? { address, isConnected: false, height: before?.height, lastSeenAt: before?.lastSeenAt }
          : { address, isConnected: true, height, lastSeenAt: at };
      await chain.peers.save(transaction, peer, owner);
      return { peer: packPeer(peer) };
    });
  });
}

export function packPeer({
  address,
  isConnected,
  height,
  lastSeenAt,
}: Peer): MessageInitShape<typeof PeerSchema> {
  return {
    address,
    peerStatus: isConnected ? "CONNECTED" : "UNREACHABLE",
    ...(height !== undefined && { height }),
    ...(lastSeenAt && { lastSeenAt: timestampFromDate(lastSeenAt) }),
  };
}

/**
 * @returns undefined if the peer does not answer, or is not a server of this service
 */
async function askHeight(address: string): Promise<number | undefined> {
  const baseUrl = `http://${address}`;
  const sessionManager = new OutgoingConnection(baseUrl);
  const transport = createGrpcTransport({ baseUrl, sessionManager, readMaxBytes: 65_536 });
  try {
    const { chainLength } = await createClient(BlockchainService, transport).getHealth(
      {},
      { timeoutMs: peerMs },
    );
    // A peer may report anything; every chain has genesis.
    return Number.isSafeInteger(chainLength) && Number(chainLength) > 0 ? chainLength : undefined;
  } catch {
    return undefined;
  } finally {
    sessionManager.abort();
  }
}

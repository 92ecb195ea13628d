/** blockchain.BlockchainService: unpack, call, pack. */

import type { ServiceImpl } from "@connectrpc/connect";
import type { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { createCallerMutex } from "../../calls/caller-mutex.ts";
import { refuseField } from "../../errors.ts";
import { readCaller } from "../../identity/principal.ts";
import { createFeed, type Feed } from "../../records/feed.ts";
import type { OpenKeys } from "../../secrets/sealed-keys.ts";
import { readHealth, readList, readPage } from "../fields.ts";
import { shareVerifications } from "../shared-verifications.ts";
import { createAddBlock } from "./add-block.ts";
import { type Block, packBlock } from "./block.ts";
import { blockList, estimateBlockBytes } from "./block-store.ts";
import { connectPeer, packPeer } from "./connect-peer.ts";
import { type ChainDeps, packValidator, registerNode } from "./register-node.ts";
import { verifyChain } from "./verify-chain.ts";

export interface BlockchainServiceDeps extends ChainDeps {
  readonly openKeys: OpenKeys;
}

/** Maximum block bytes to buffer for a watcher that falls behind. */
const watchedBytes = 64 * 1024;

/** The block feed that all watchers share. Feed positions count from 1, so 0 is before genesis. */
function blockFeed({ chain, store }: ChainDeps): Feed<Block> {
  return createFeed({
    readEnd: chain.readLength,
    read: (after, limit) => chain.readBlocks(after, limit, watchedBytes),
    positionOf: ({ index }) => index + 1,
    topicsOf: () => [],
    bytesOf: estimateBlockBytes,
    callerOf: store.callerOf,
    onWrite: (listener) => store.onWrite(listener),
  });
}

export function blockchainService(deps: BlockchainServiceDeps): ServiceImpl<typeof BlockchainService> {
  const { store, chain, openKeys } = deps;
  const addBlock = createAddBlock(deps, openKeys);
  const feed = blockFeed(deps);
  const provider = deps.provider.shared;
  const verifications = shareVerifications(createCallerMutex(), (options) =>
    verifyChain({ chain, provider }, options),
  );
  return {
    registerNode: (req, context) => registerNode(deps, req, readCaller(context)),
    addBlock: (req, context) => addBlock(req, readCaller(context)),
    getChain: async (fields) => {
      const { rows, nextPageToken } = await chain.listBlocks(readPage(fields, blockList));
      const { length, headHash } = await chain.readHead();
      return { blocks: rows.map(packBlock), length, headHash, nextPageToken, totalSize: length };
    },
    verifyChain: async (_req, { signal }) => {
      const { firstInvalidIndex, ...found } = await verifications.wait({ signal });
      return { ...found, ...(firstInvalidIndex !== undefined && { firstInvalidIndex }) };
    },
    listValidators: async (fields) => {
      const { rows, ...page } = await readList(chain.validators, fields, {});
      return { ...page, validators: rows.map(packValidator) };
    },
    connectPeer: (req, context) => connectPeer(deps, req, readCaller(context)),
    listPeers: async (fields) => {
      const { rows, ...page } = await readList(chain.peers, fields, {});
      return { ...page, peers: rows.map(packPeer) };
    },
    getHealth: () => readHealth(store, async () => ({ chainLength: (await chain.readHead()).length })),
    async *watchBlocks({ fromIndex }, { signal }) {
      const length = await chain.readLength();
      if (fromIndex > length)
        throw refuseField("fromIndex", `is beyond the next block, which has the index ${length}`);
      const blocks = feed.follow({ after: fromIndex, topic: "", signal });
      for await (const block of blocks) yield { block: packBlock(block) };
    },
  };
}

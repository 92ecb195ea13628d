/** The block log: leaf i is the hash of block i. */
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { RecordDamagedError } from "../../src/database/store-error.ts";
import { genesis } from "../../src/services/blockchain/block.ts";
import { type ChainStore, createChainStore } from "../../src/services/blockchain/store.ts";
import { checkContent, createSignatureCheck } from "../../src/services/blockchain/verify-chain.ts";
import type { Store } from "../../src/store/store.ts";
import { decodeHash, type LeafSource } from "./source.ts";

export function createBlockSource(store: Store, provider: CryptoProvider): LeafSource {
  const chain = createChainStore(store);
  return {
    log: "blockchain",
    firstLeaves: 1,
    readSize: async () => (await chain.readHead()).length,
    async readStored(from, limit) {
      const hashes = await readHashes(store, from, limit);
      return hashes.map((digits, i) => decodeHash(digits, `block ${from + i}`));
    },
    async readTrue(from, limit) {
      if (from === 0) return [decodeHash(genesis.blockHash, "block 0")];
      const blocks = await chain.readBlocks(from, limit);
      const [before] = await readHashes(store, from - 1, 1);
      let previous = { blockHash: before ?? "" };
      for (const [i, block] of blocks.entries()) {
        if (checkContent(block, previous, from + i)) throw damaged(from + i);
        previous = block;
      }
      const last = blocks.at(-1);
      if (last === undefined) throw damaged(from);
      // The last block's hash covers all earlier blocks, so only the last one needs proof that the server
      // wrote it.
      if (!(await isTrue(chain, provider, last))) throw damaged(last.index);
      return blocks.map(({ blockHash, index }) => decodeHash(blockHash, `block ${index}`));
    },
  };
}

/** The end of the chain has a tag; every other block has a validator's signature, whose key has a tag. */
async function isTrue(
  chain: ChainStore,
  provider: CryptoProvider,
  block: Awaited<ReturnType<ChainStore["readBlocks"]>>[number],
): Promise<boolean> {
  const { length, headHash } = await chain.readHead();
  if (block.index === length - 1) return block.blockHash === headHash;
  const findFalse = createSignatureCheck({ chain, provider: provider.system });
  return (await findFalse([block])) === undefined;
}

/** Reads the stored block hashes. Genesis is the same in every chain and not stored. */
async function readHashes({ reader }: Store, from: number, limit: number): Promise<string[]> {
  const rows = await reader
    .selectFrom("blockchain_blocks")
    .select(["block_index", "block_hash"])
    .where("block_index", ">=", Math.max(from, 1))
    .orderBy("block_index")
    .limit(limit)
    .execute();
  const blocks = rows.map(({ block_index, block_hash }) => ({ index: block_index, blockHash: block_hash }));
  const all = from === 0 ? [genesis, ...blocks].slice(0, limit) : blocks;
  return all.map(({ index, blockHash }, i) => {
    if (index !== from + i) throw damaged(from + i);
    return blockHash;
  });
}

function damaged(index: number): RecordDamagedError {
  return new RecordDamagedError(`block ${index}`);
}

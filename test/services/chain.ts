/** Helpers for chain tests: add, read and rehash blocks outside the service. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { Block, BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { bytesOf } from "../support/bytes.ts";
import { present } from "./answers.ts";
import { sha256 } from "./node-crypto.ts";

export type ChainClient = Client<typeof BlockchainService>;

export const zeros = "0".repeat(64);
/** SHA-256 of genesis as the proto specifies it: 8 zeros, 32 zeros, 8 zeros, 20 zeros, "genesis". */
export const genesisHash = sha256(new Uint8Array(68), "genesis");

/** Adds a number of blocks one after another, and returns them. */
export async function addBlocks(client: ChainClient, count: number): Promise<Block[]> {
  const blocks: Block[] = [];
  for (let i = 0; i < count; i += 1)
    blocks.push(present((await client.addBlock({ data: bytesOf(`block ${i}`) })).block));
  return blocks;
}

/** Reads the whole chain in small pages. */
export async function readChain(client: ChainClient): Promise<Block[]> {
  const blocks: Block[] = [];
  let pageToken = "";
  do {
    const page = await client.getChain({ pageSize: 40, pageToken });
    blocks.push(...page.blocks);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return blocks;
}

/** Hashes a block, byte for byte as the proto specifies. */
export function hashOutside(block: Block): string {
  const number = (value: number | bigint) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64BE(BigInt(value));
    return bytes;
  };
  const at = timestampDate(present(block.timestamp)).getTime();
  const address = Buffer.from(block.validatorAddress.slice(2), "hex");
  const prevHash = Buffer.from(block.prevHash, "hex");
  return sha256(number(block.index), prevHash, number(at), address, block.data);
}

/** Returns the indexes of blocks that do not follow their predecessor, or have the wrong hash. */
export function brokenIndexes(blocks: readonly Block[]): number[] {
  return blocks.flatMap((block, i) => {
    const isLinked = block.prevHash === (i === 0 ? zeros : blocks[i - 1]?.blockHash);
    return block.index === i && isLinked && block.blockHash === hashOutside(block) ? [] : [i];
  });
}

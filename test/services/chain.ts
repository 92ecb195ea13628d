/** Helpers for chain tests: add, read and rehash blocks outside the service. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { Block, BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { bytesOf } from "../support/bytes.ts";
import { present, readPages } from "./answers.ts";
import { sha256 } from "./node-crypto.ts";

export type ChainClient = Client<typeof BlockchainService>;

/** Adds a number of blocks one after another, and returns them. */
export async function addBlocks(client: ChainClient, count: number): Promise<Block[]> {
  const blocks: Block[] = [];
  for (let i = 0; i < count; i += 1)
    blocks.push(present((await client.addBlock({ data: bytesOf(`block ${i}`) })).block));
  return blocks;
}

/** Reads the whole chain in small pages. */
export async function readChain(client: ChainClient): Promise<Block[]> {
  const read = (pageToken: string) => client.getChain({ pageSize: 40, pageToken });
  return (await readPages(read, ({ blocks }) => blocks)).rows;
}

/** Hashes a block of a time in milliseconds, byte for byte as the proto specifies. */
export function hashOutside(
  {
    index,
    prevHash,
    validatorAddress,
    data,
  }: Pick<Block, "index" | "prevHash" | "validatorAddress" | "data">,
  atMs: number,
): string {
  const number = (value: number | bigint) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64BE(BigInt(value));
    return bytes;
  };
  const address = Buffer.from(validatorAddress.slice(2), "hex");
  return sha256(number(index), Buffer.from(prevHash, "hex"), number(atMs), address, data);
}

/** Returns the indexes of blocks that do not follow their predecessor, or have the wrong hash. */
export function brokenIndexes(blocks: readonly Block[]): number[] {
  return blocks.flatMap((block, i) => {
    const isLinked = block.prevHash === (i === 0 ? "0".repeat(64) : blocks[i - 1]?.blockHash);
    const hash = hashOutside(block, timestampDate(present(block.timestamp)).getTime());
    return block.index === i && isLinked && block.blockHash === hash ? [] : [i];
  });
}

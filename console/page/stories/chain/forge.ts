/** Tampers with blocks like a forger who has a copy of the chain but no validator's secret key. */
import { clone } from "@bufbuild/protobuf";
import { type Block, BlockSchema } from "#gen/blockchain/blockchain_service_pb.ts";
import { deriveAddress, makeSigningKey } from "../../signing-key.ts";
import { fromHex } from "../../values.ts";
import { hashBlock, validatorAlgorithm } from "./blocks.ts";

/** How far the forger goes. Each effort includes the previous ones. */
export const efforts = [
  "changes the data",
  "and recomputes the hash",
  "and links all later blocks again",
  "and signs all blocks with a different key",
] as const;

export type Effort = (typeof efforts)[number];

export interface Forgery {
  /** The block whose data is changed. */
  readonly index: number;
  readonly data: Uint8Array;
  readonly effort: Effort;
}

/** @returns a copy of the blocks; those before `index` are unchanged */
export async function forgeBlocks(
  blocks: readonly Block[],
  { index, data, effort }: Forgery,
): Promise<readonly Block[]> {
  const copy = blocks.map((block) => clone(BlockSchema, block));
  const first = copy.findIndex((block) => block.index === index);
  const changed = copy[first];
  if (changed === undefined) throw new Error(`the copy has no block ${index}`);
  changed.data = data;
  const depth = efforts.indexOf(effort);
  const rehashed = depth === 0 ? [] : depth === 1 ? [changed] : copy.slice(first);
  const forger = depth === 3 ? await makeSigningKey(validatorAlgorithm) : undefined;
  const forgerAddress = forger && (await deriveAddress(forger.publicKey));
  let previous = copy[first - 1];
  for (const block of rehashed) {
    if (previous !== undefined) block.prevHash = previous.blockHash;
    if (forgerAddress !== undefined) block.validatorAddress = forgerAddress;
    block.blockHash = await hashBlock(block);
    if (forger !== undefined) block.signature = Uint8Array.from(forger.sign(fromHex(block.blockHash)));
    previous = block;
  }
  return copy;
}

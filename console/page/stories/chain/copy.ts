/** The browser's copy of the chain, which checks every block of the stream itself. */
import type { Block } from "#gen/blockchain/blockchain_service_pb.ts";
import { type CheckedBlock, checkBlock } from "./blocks.ts";

export interface ChainCopy {
  /** Public keys by address; undefined if only the address is known. */
  readonly validators: Map<string, Uint8Array | undefined>;
  blocks: readonly CheckedBlock[];
}

export function createChainCopy(): ChainCopy {
  return { validators: new Map(), blocks: [] };
}

/**
 * Checks a block from the stream and adds it to the copy.
 *
 * @param before the blocks delivered earlier
 */
export async function receiveBlock(
  copy: ChainCopy,
  message: { readonly block?: Block | undefined },
  before: readonly CheckedBlock[],
): Promise<CheckedBlock> {
  const block = requireBlock(message.block);
  const { validators } = copy;
  // If a validator registered in the meantime, the page knows only its address.
  if (!validators.has(block.validatorAddress)) validators.set(block.validatorAddress, undefined);
  const checked = await checkBlock(block, before.at(-1), validators);
  copy.blocks = [...before, checked];
  return checked;
}

/** @throws Error for an answer without a block */
export function requireBlock(block: Block | undefined): Block {
  if (block === undefined) throw new Error("the server sent a message without a block");
  return block;
}

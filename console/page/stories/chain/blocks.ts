/** Verifies a chain of blocks from their content; proto/blockchain defines what is hashed and signed. */
import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { type Block, BlockSchema } from "#gen/blockchain/blockchain_service_pb.ts";
import { sha256, verifyHere } from "../../algorithms.ts";
import { fromHex, toHex, toUtf8 } from "../../values.ts";

/** Block faults, named as in VerifyChain. */
export type BlockFault = "INDEX" | "LINK" | "HASH" | "VALIDATOR" | "SIGNATURE";

/** Each fault in words. */
export const faultWords: Readonly<Record<BlockFault, string>> = {
  INDEX: "the previous block is missing",
  LINK: "its previous hash differs from the hash of the previous block",
  HASH: "its content does not match its hash",
  VALIDATOR: "no validator of this chain created it",
  SIGNATURE: "the validator has not signed this hash",
};

/** A block and the browser's findings. */
export interface CheckedBlock {
  readonly block: Block;
  /** The content's hash, computed here. */
  readonly computedHash: string;
  /** The first fault in the block itself. */
  readonly fault: BlockFault | undefined;
  /** Whether it and all known earlier blocks are valid. */
  readonly holds: boolean;
  /** Whether the previous block is unknown here, so that the link is not checked. */
  readonly isAnchor: boolean;
  /** "unchecked" if only the validator's address is known, "none" for genesis. */
  readonly signature: "valid" | "not valid" | "unchecked" | "none";
}

/** Validators that may sign, by address, with their public keys where known. */
export type Validators = ReadonlyMap<string, Uint8Array | undefined>;

export const validatorAlgorithm = "ML-DSA-65";

/** Block 0 of every chain, except for its hash. */
const genesis = create(BlockSchema, {
  prevHash: "0".repeat(64),
  data: toUtf8("genesis"),
  timestamp: timestampFromMs(0),
  validatorAddress: `0x${"0".repeat(40)}`,
});

/**
 * SHA-256 over index (8 bytes, big-endian) ‖ prevHash (32) ‖ milliseconds since 1970 (8, big-endian)
 * ‖ validatorAddress (20) ‖ data, in hexadecimal.
 */
export async function hashBlock({
  index,
  prevHash,
  timestamp,
  validatorAddress,
  data,
}: Block): Promise<string> {
  const content = new Uint8Array(68 + data.length);
  const view = new DataView(content.buffer);
  view.setBigUint64(0, BigInt(index));
  content.set(fromHex(prevHash), 8);
  view.setBigUint64(40, BigInt(timestamp ? timestampMs(timestamp) : 0));
  content.set(fromHex(validatorAddress.slice("0x".length)), 48);
  content.set(data, 68);
  return toHex(await sha256(content));
}

/** Checks a block, and that it follows the previous one. */
export async function checkBlock(
  block: Block,
  before: CheckedBlock | undefined,
  validators: Validators,
): Promise<CheckedBlock> {
  const isAnchor = before === undefined && block.index > 0;
  const signature = await checkSignature(block, validators);
  const computedHash = await hashBlock(block);
  const fault =
    findLinkFault(block, before?.block) ??
    ((await isHashRight(block, computedHash)) ? undefined : "HASH") ??
    (block.index > 0 && !validators.has(block.validatorAddress) ? "VALIDATOR" : undefined) ??
    (signature === "not valid" ? "SIGNATURE" : undefined);
  return {
    block,
    computedHash,
    fault,
    holds: fault === undefined && (before?.holds ?? true),
    isAnchor,
    signature,
  };
}

/** Checks consecutive blocks. */
export async function checkBlocks(
  blocks: readonly Block[],
  validators: Validators,
): Promise<readonly CheckedBlock[]> {
  const checked: CheckedBlock[] = [];
  for (const block of blocks) checked.push(await checkBlock(block, checked.at(-1), validators));
  return checked;
}

function findLinkFault(block: Block, before: Block | undefined): BlockFault | undefined {
  if (before === undefined) return undefined;
  if (block.index !== before.index + 1) return "INDEX";
  return block.prevHash === before.blockHash ? undefined : "LINK";
}

/** Genesis is the same in every chain, so any other block 0 is wrong, whatever its hash. */
async function isHashRight({ index, blockHash }: Block, computedHash: string): Promise<boolean> {
  return blockHash === computedHash && (index > 0 || computedHash === (await hashBlock(genesis)));
}

async function checkSignature(block: Block, validators: Validators): Promise<CheckedBlock["signature"]> {
  if (block.index === 0) return "none";
  const publicKey = validators.get(block.validatorAddress);
  if (publicKey === undefined) return "unchecked";
  const hash = fromHex(block.blockHash);
  return (await verifyHere(validatorAlgorithm, block.signature, hash, publicKey)) ? "valid" : "not valid";
}

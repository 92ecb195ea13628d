import type { PublicKey } from "../../crypto/provider.ts";
import { RecordDamagedError } from "../../database/store-error.ts";
import { type Block, genesis, hashBlock, validatorAlgorithm } from "./block.ts";
import type { ChainHead } from "./block-store.ts";
import type { ChainDeps } from "./register-node.ts";
import type { ChainStore } from "./store.ts";

/** What can be wrong with a block (see VerifyChainResponse.reason). */
export type ChainFault = "INDEX" | "LINK" | "HASH" | "VALIDATOR" | "SIGNATURE" | "END";

export interface ChainVerification {
  readonly valid: boolean;
  readonly blocksChecked: number;
  readonly firstInvalidIndex: number | undefined;
  readonly reason: ChainFault | "";
}

/** Position of an invalid block, and what is wrong with it. */
interface Fault {
  readonly index: number;
  readonly reason: ChainFault;
}

export interface VerifyChainOptions {
  readonly signal?: AbortSignal;
  /** Called with the number of checked blocks and the total. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** Blocks to read per query. */
const chunkBlocks = 500;

/**
 * Verifies the chain up to its head at the start of the call.
 *
 * Checks hashes and links in order. Verifies signatures in parallel on all cores while it reads the next
 * blocks.
 */
export async function verifyChain(
  deps: Pick<ChainDeps, "chain" | "provider">,
  { signal, onProgress }: VerifyChainOptions = {},
): Promise<ChainVerification> {
  const { chain } = deps;
  const head = await chain.readHead().catch((error: unknown) => {
    if (error instanceof RecordDamagedError) return undefined;
    throw error;
  });
  const end = head?.length ?? Number.POSITIVE_INFINITY;
  const read = (index: number): Promise<Block[]> =>
    index < end ? chain.readBlocks(index, Math.min(chunkBlocks, end - index)) : Promise.resolve([]);
  const findFalse = createSignatureCheck(deps);

  let previous: Block = genesis;
  let fault: Fault | undefined;
  // Signatures of the previous chunk are verified while the next chunk is read and hashed.
  let signatures: Promise<Fault | undefined> = Promise.resolve(undefined);
  for (let index = 1; fault === undefined; ) {
    const blocks = await read(index);
    signal?.throwIfAborted();
    const sound: Block[] = [];
    let unsound: Fault | undefined;
    for (const block of blocks) {
      const reason = checkContent(block, previous, index);
      if (reason) {
        unsound = { index, reason };
        break;
      }
      sound.push(block);
      previous = block;
      index += 1;
    }
    fault = await signatures;
    if (head && fault === undefined) onProgress?.(index - sound.length, head.length);
    if (fault) break;
    signatures = findFalse(sound);
    // Awaited after the next read. If that fails first, this failure must not count as an unhandled rejection.
    signatures.catch(() => {});
    if (unsound || blocks.length === 0) {
      // An invalid signature in an earlier block is the first fault, even though its check ends later.
      fault = (await signatures) ?? unsound;
      break;
    }
  }
  // The head contains the hash of the last block, and is tagged.
  const checked = previous.index + 1;
  if (!fault && head === undefined) fault = { index: checked, reason: "END" };
  if (!fault && head && checked < head.length) fault = { index: checked, reason: "END" };
  if (!fault && head && previous.blockHash !== head.headHash)
    fault = { index: previous.index, reason: "END" };
  if (!fault && head && (await hasMore(chain, head))) fault = { index: head.length, reason: "END" };
  return {
    valid: fault === undefined,
    blocksChecked: fault ? fault.index : checked,
    firstInvalidIndex: fault?.index,
    reason: fault?.reason ?? "",
  };
}

/**
 * Returns whether a block exists beyond the head. A block appended in the meantime does not count: it moves
 * the head.
 */
async function hasMore(chain: ChainStore, head: ChainHead): Promise<boolean> {
  const [block] = await chain.readBlocks(head.length, 1);
  return block !== undefined && (await chain.readHead()).length === head.length;
}

/** Checks that a block is at its index, follows its predecessor, and has the hash of its content. */
export function checkContent(
  block: Block,
  previous: Pick<Block, "blockHash">,
  index: number,
): ChainFault | undefined {
  if (block.index !== index) return "INDEX";
  if (block.prevHash !== previous.blockHash) return "LINK";
  return recomputeHash(block) === block.blockHash ? undefined : "HASH";
}

/** Hashing can fail for a block that was changed outside the server. */
function recomputeHash(block: Block): string {
  const isPossible =
    /^[0-9a-f]{64}$/.test(block.prevHash) &&
    /^0x[0-9a-f]{40}$/.test(block.validatorAddress) &&
    block.timestamp.getTime() >= 0;
  return isPossible ? hashBlock(block) : "";
}

/** Creates the check that verifies block signatures in parallel and finds the first invalid one. */
export function createSignatureCheck({ provider, chain }: Pick<ChainDeps, "chain" | "provider">) {
  const validators = new Map<string, Promise<PublicKey | undefined>>();
  const loadKey = async (address: string): Promise<PublicKey | undefined> => {
    try {
      const validator = address === "" ? undefined : await chain.findValidator(address);
      return validator && provider.importPublicKey(validatorAlgorithm, { raw: validator.publicKey });
    } catch (error) {
      if (error instanceof RecordDamagedError) return undefined;
      throw error;
    }
  };
  const checkOne = async (block: Block): Promise<Fault | undefined> => {
    const { index, blockHash, signature, validatorAddress } = block;
    const publicKey = await validators.getOrInsertComputed(validatorAddress, loadKey);
    if (publicKey === undefined) return { index, reason: "VALIDATOR" };
    const isValid = await provider.unbounded.verify(publicKey, Buffer.from(blockHash, "hex"), signature);
    return isValid ? undefined : { index, reason: "SIGNATURE" };
  };
  return async (blocks: readonly Block[]): Promise<Fault | undefined> =>
    (await Promise.all(blocks.map(checkOne))).find((fault) => fault !== undefined);
}

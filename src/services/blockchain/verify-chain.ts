import type { PublicKey } from "../../crypto/provider.ts";
import { RecordDamaged } from "../../storage/store-error.ts";
import { type Block, genesis, hashBlock, validatorAlgorithm } from "./block.ts";
import type { ChainParts } from "./register-node.ts";
import type { ChainHead, ChainStore } from "./store.ts";

/** What can be wrong with a block. */
export type ChainFault = "INDEX" | "LINK" | "HASH" | "VALIDATOR" | "SIGNATURE" | "END";

/** What verification found. */
export interface ChainVerification {
  readonly valid: boolean;
  readonly blocksChecked: number;
  readonly firstInvalidIndex: number | undefined;
  readonly reason: ChainFault | "";
}

/** Blocks to read at once. */
const chunkBlocks = 500;
/** Signatures to verify at a time: enough to keep all cores busy while the next blocks are read. */
const inFlight = 256;

/**
 * Verifies the chain as it is when this begins, from genesis to its end: hashes and links one after another,
 * signatures side by side on all cores.
 */
export async function verifyChain(parts: ChainParts, signal: AbortSignal): Promise<ChainVerification> {
  const { chain } = parts;
  const head = await chain.readHead().catch((error: unknown) => {
    if (error instanceof RecordDamaged) return undefined;
    throw error;
  });
  const signatures = createSignatureChecks(parts);
  const end = head?.length ?? Number.POSITIVE_INFINITY;
  let previous: Block = genesis;
  let fault: { index: number; reason: ChainFault } | undefined;
  walk: for (let index = 1; index < end; ) {
    const blocks = await chain.readBlocks(index, Math.min(chunkBlocks, end - index));
    if (blocks.length === 0) break;
    for (const block of blocks) {
      signal.throwIfAborted();
      const reason = checkContent(block, previous, index);
      if (reason) fault = { index, reason };
      if (fault || signatures.fault) break walk;
      await signatures.check(block);
      previous = block;
      index += 1;
    }
  }
  await signatures.finish();
  // A signature before it is the first fault, though it was found later.
  if (signatures.fault) fault = signatures.fault;
  // The hash of the last block is in the head, which is tagged.
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

/** Tells whether there is a block beyond the end; one that was appended meanwhile has moved the end. */
async function hasMore(chain: ChainStore, head: ChainHead): Promise<boolean> {
  const [block] = await chain.readBlocks(head.length, 1);
  return block !== undefined && (await chain.readHead()).length === head.length;
}

function checkContent(block: Block, previous: Block, index: number): ChainFault | undefined {
  if (block.index !== index) return "INDEX";
  if (block.prevHash !== previous.blockHash) return "LINK";
  return hashOf(block) === block.blockHash ? undefined : "HASH";
}

/** What was changed behind our back may be nothing that can be hashed. */
function hashOf(block: Block): string {
  const isPossible =
    /^[0-9a-f]{64}$/.test(block.prevHash) &&
    /^0x[0-9a-f]{40}$/.test(block.validatorAddress) &&
    block.timestamp.getTime() >= 0;
  return isPossible ? hashBlock(block) : "";
}

/** Checks signatures side by side, and remembers the first block in the chain whose is wrong. */
function createSignatureChecks({ provider, chain }: ChainParts) {
  const validators = new Map<string, Promise<PublicKey | undefined>>();
  const running = new Set<Promise<void>>();
  const checks = {
    fault: undefined as { index: number; reason: ChainFault } | undefined,
    /** Begins to check a block; waits while too many are being checked. */
    async check(block: Block): Promise<void> {
      if (running.size >= inFlight) await Promise.race(running);
      const run = checkOne(block).finally(() => running.delete(run));
      running.add(run);
    },
    async finish(): Promise<void> {
      await Promise.all(running);
    },
  };
  const findKey = (address: string): Promise<PublicKey | undefined> => {
    let found = validators.get(address);
    if (found === undefined) {
      found = loadKey(address);
      validators.set(address, found);
    }
    return found;
  };
  const loadKey = async (address: string): Promise<PublicKey | undefined> => {
    try {
      const validator = address === "" ? undefined : await chain.findValidator(address);
      return validator && provider.importPublicKey(validatorAlgorithm, { raw: validator.publicKey });
    } catch (error) {
      if (error instanceof RecordDamaged) return undefined;
      throw error;
    }
  };
  const checkOne = async ({ index, blockHash, signature, validatorAddress }: Block): Promise<void> => {
    const publicKey = await findKey(validatorAddress);
    const isValid = publicKey && (await provider.verify(publicKey, Buffer.from(blockHash, "hex"), signature));
    if (isValid || (checks.fault && checks.fault.index < index)) return;
    checks.fault = { index, reason: publicKey ? "SIGNATURE" : "VALIDATOR" };
  };
  return checks;
}

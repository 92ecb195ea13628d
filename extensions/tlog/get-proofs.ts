import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  GetConsistencyProofResponseSchema,
  GetInclusionProofResponseSchema,
} from "#gen/tlog/log_service_pb.ts";
import { refuse, refuseField } from "../../src/errors.ts";
import type { PublishedCheckpoint } from "./checkpoint-store.ts";
import { writeNote } from "./get-checkpoint.ts";
import type { ServedLog } from "./logs.ts";

/** The leaf to prove, and the tree. */
export interface InclusionInput {
  readonly index: number;
  /** Undefined for the newest checkpoint. */
  readonly size: number | undefined;
}

/**
 * Proves that a leaf is in a tree.
 *
 * @throws LEAF_OUT_OF_RANGE, TREE_SIZE_OUT_OF_RANGE
 */
export async function getInclusionProof(
  log: ServedLog,
  { index, size }: InclusionInput,
): Promise<MessageInitShape<typeof GetInclusionProofResponseSchema>> {
  const tree = await findTree(log, "treeSize", size);
  if (index >= tree.size)
    throw refuse("LEAF_OUT_OF_RANGE", `leafIndex: a tree of size ${tree.size} has no leaf ${index}`, {
      treeSize: String(tree.size),
    });
  return {
    leafIndex: index,
    treeSize: tree.size,
    leaf: await log.readLeaf(index),
    hashes: await log.proveInclusion(index, tree.size),
    rootHash: await log.computeRoot(tree.size),
    checkpoint: await tree.writeCheckpoint(),
  };
}

/** The sizes of the trees to compare. */
export interface ConsistencyInput {
  readonly from: number;
  /** Undefined for the newest checkpoint. */
  readonly to: number | undefined;
}

/**
 * Proves that a tree starts with all leaves of a smaller one.
 *
 * @throws TREE_SIZE_OUT_OF_RANGE
 */
export async function getConsistencyProof(
  log: ServedLog,
  { from, to }: ConsistencyInput,
): Promise<MessageInitShape<typeof GetConsistencyProofResponseSchema>> {
  const tree = await findTree(log, "toSize", to);
  if (from > tree.size)
    throw refuseField(
      "fromSize",
      `must be at most ${tree.size}, the size of the later tree`,
      "TREE_SIZE_OUT_OF_RANGE",
    );
  return {
    fromSize: from,
    toSize: tree.size,
    // Every tree starts with the empty tree; RFC 6962 has no proof for that.
    hashes: from === 0 ? [] : await log.proveConsistency(from, tree.size),
    checkpoint: await tree.writeCheckpoint(),
  };
}

/** A published tree, and its checkpoint if one exists. */
interface FoundTree {
  readonly size: number;
  writeCheckpoint(): Promise<string>;
}

async function findTree(log: ServedLog, field: string, size: number | undefined): Promise<FoundTree> {
  if (size === undefined) {
    const newest = await log.readCheckpoint();
    return { size: newest.size, writeCheckpoint: () => writeNote(log, newest) };
  }
  const published = await log.readPublishedSize();
  if (size > published)
    throw refuseField(
      field,
      `must be at most ${published}, the size of the newest checkpoint`,
      "TREE_SIZE_OUT_OF_RANGE",
    );
  return {
    size,
    async writeCheckpoint() {
      const checkpoint: PublishedCheckpoint | undefined = await log.checkpoints.find(size);
      return checkpoint?.origin === log.origin ? writeNote(log, checkpoint) : "";
    },
  };
}

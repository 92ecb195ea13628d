/**
 * Splits trees as in RFC 6962, section 2.1. Sizes and indexes are integers up to 2^53 - 1, so bitwise
 * operators, which are limited to 32 bits, cannot be used.
 */
import { combine, emptyRoot } from "../../src/merkle/hashes.ts";

/** The leaves from `start` (inclusive) to `end` (exclusive). */
export interface LeafRange {
  readonly start: number;
  readonly end: number;
}

/** A node over a perfect subtree: 2^height leaves, starting at leaf index * 2^height. */
export interface TreeNode {
  readonly height: number;
  readonly index: number;
}

/** Reads the nodes' hashes, in order. */
export type NodeReader = (nodes: readonly TreeNode[]) => Promise<readonly Uint8Array[]>;

/** Finds the largest power of two below a number of leaves, which is at least 2. */
export function findSplit(leaves: number): number {
  let power = 1;
  while (power * 2 < leaves) power *= 2;
  return power;
}

/**
 * Lists a range's perfect subtrees, left to right. The range starts where a subtree of its size may start.
 */
function coverRange({ start, end }: LeafRange): TreeNode[] {
  const nodes: TreeNode[] = [];
  let position = start;
  while (position < end) {
    let height = 0;
    let leaves = 1;
    while (leaves * 2 <= end - position) {
      leaves *= 2;
      height += 1;
    }
    nodes.push({ height, index: position / leaves });
    position += leaves;
  }
  return nodes;
}

/** Computes the hashes of ranges with a single read. */
export async function hashRanges(ranges: readonly LeafRange[], read: NodeReader): Promise<Uint8Array[]> {
  const covers = ranges.map(coverRange);
  const hashes = (await read(covers.flat())).values();
  return covers.map((nodes) => combine(nodes.map(() => hashes.next().value as Uint8Array)));
}

/** Computes the root of the tree over the first `size` leaves. */
export async function computeRoot(size: number, read: NodeReader): Promise<Uint8Array> {
  const [root] = await hashRanges([{ start: 0, end: size }], read);
  return root ?? emptyRoot;
}

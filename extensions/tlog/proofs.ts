/** Creates RFC 6962 proofs. */
import { findSplit, hashRanges, type LeafRange, type NodeReader } from "./ranges.ts";

/**
 * Proves that a leaf is in a tree (section 2.1.1).
 *
 * @returns the hashes from the leaf's sibling up to the root's child; at most 53
 * @throws RangeError if the tree has no such leaf
 */
export function proveInclusion(index: number, size: number, read: NodeReader): Promise<Uint8Array[]> {
  requireSizes(index + 1, size);
  const ranges: LeafRange[] = [];
  let [start, end] = [0, size];
  while (end - start > 1) {
    const middle = start + findSplit(end - start);
    if (index < middle) {
      ranges.push({ start: middle, end });
      end = middle;
    } else {
      ranges.push({ start, end: middle });
      start = middle;
    }
  }
  return hashRanges(ranges.reverse(), read);
}

/**
 * Proves that a tree starts with all leaves of an earlier one (section 2.1.2).
 *
 * @param from the earlier tree's size, at least 1: RFC 6962 has no proof for the empty tree
 * @returns the proof's hashes; none for equal sizes
 * @throws RangeError if the earlier tree is empty or larger
 */
export function proveConsistency(from: number, to: number, read: NodeReader): Promise<Uint8Array[]> {
  requireSizes(from, to);
  const ranges: LeafRange[] = [];
  let [start, end] = [0, to];
  while (end !== from) {
    const middle = start + findSplit(end - start);
    if (from <= middle) {
      ranges.push({ start: middle, end });
      end = middle;
    } else {
      ranges.push({ start, end: middle });
      start = middle;
    }
  }
  // A verifier knows the earlier tree's root, so it is left out if the last range is that whole tree.
  if (start !== 0) ranges.push({ start, end });
  return hashRanges(ranges.reverse(), read);
}

function requireSizes(smaller: number, larger: number): void {
  const isWhole = Number.isSafeInteger(smaller) && Number.isSafeInteger(larger);
  if (!isWhole || smaller < 1 || smaller > larger)
    throw new RangeError(`no proof exists from ${smaller} to ${larger} leaves`);
}

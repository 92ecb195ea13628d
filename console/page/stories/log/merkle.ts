/** RFC 6962 Merkle trees in the browser: hashes, inclusion proofs, and a tree small enough to draw. */
import { sha256 } from "../../algorithms.ts";

/**
 * A node over the leaves from `start` (inclusive) to `end` (exclusive). It has children, or is a leaf, or is
 * folded.
 */
export interface TreeNode {
  readonly start: number;
  readonly end: number;
  readonly children?: readonly [TreeNode, TreeNode];
}

/** A proof that a leaf is in a tree. */
export interface Inclusion {
  /** Leaf index from 0. */
  readonly index: number;
  readonly size: number;
  /** The leaf's data. */
  readonly leaf: Uint8Array;
  /** From the leaf's sibling upwards, 32 bytes each. */
  readonly hashes: readonly Uint8Array[];
}

/** A tree hash, and how the browser got it. */
export interface NodeHash extends Pick<TreeNode, "start" | "end"> {
  readonly hash: Uint8Array;
  /** "computed" here on the path from leaf to root, or "given" by the proof. */
  readonly source: "computed" | "given";
}

/** Maximum leaves of a tree that is drawn completely. */
export const maxWholeLeaves = 8;

/** Hashes a leaf: SHA-256(0x00 ‖ data), RFC 6962, section 2.1. */
export function hashLeaf(data: Uint8Array): Promise<Uint8Array> {
  return sha256(Uint8Array.of(0, ...data));
}

/** Hashes an inner node: SHA-256(0x01 ‖ left ‖ right), RFC 6962, section 2.1. */
function hashChildren(left: Uint8Array, right: Uint8Array): Promise<Uint8Array> {
  return sha256(Uint8Array.of(1, ...left, ...right));
}

/** Finds the split of a tree with at least 2 leaves: the largest power of two below their number. */
function findSplit(leaves: number): number {
  let power = 1;
  while (power * 2 < leaves) power *= 2;
  return power;
}

/**
 * Builds a tree to draw: complete if it is small; otherwise only nodes on the path to a leaf have children.
 */
export function buildTree(size: number, leaf = 0): TreeNode {
  const build = (start: number, end: number): TreeNode => {
    const isOpen = size <= maxWholeLeaves || (start <= leaf && leaf < end);
    if (end - start === 1 || !isOpen) return { start, end };
    const middle = start + findSplit(end - start);
    return { start, end, children: [build(start, middle), build(middle, end)] };
  };
  return build(0, size);
}

/** Lists a drawn tree's ends from left to right: leaves and folded nodes. */
export function listEnds(node: TreeNode): readonly TreeNode[] {
  return node.children === undefined ? [node] : node.children.flatMap(listEnds);
}

/**
 * Recomputes the hashes from a leaf to the root (RFC 6962, section 2.1.1).
 *
 * @returns the hashes that were used and computed, root last
 * @throws RangeError if the proof has too many or too few hashes
 */
export async function followProof({ index, size, leaf, hashes }: Inclusion): Promise<readonly NodeHash[]> {
  const siblings = listSiblings(index, size);
  if (siblings.length !== hashes.length)
    throw new RangeError(
      `a proof of leaf ${index} of ${size} has ${siblings.length} hashes, not ${hashes.length}`,
    );
  let current: NodeHash = { start: index, end: index + 1, hash: await hashLeaf(leaf), source: "computed" };
  const used: NodeHash[] = [current];
  for (const [at, sibling] of siblings.entries()) {
    const given: NodeHash = { ...sibling, hash: hashes[at] ?? new Uint8Array(), source: "given" };
    const [left, right] = given.start < current.start ? [given, current] : [current, given];
    current = {
      start: left.start,
      end: right.end,
      hash: await hashChildren(left.hash, right.hash),
      source: "computed",
    };
    used.push(given, current);
  }
  return used;
}

/** The siblings' ranges on the path from a leaf to the root. */
function listSiblings(index: number, size: number): readonly TreeNode[] {
  const siblings: TreeNode[] = [];
  for (let node = buildTree(size, index); node.children !== undefined; ) {
    const [left, right] = node.children;
    siblings.unshift(index < right.start ? right : left);
    node = index < right.start ? left : right;
  }
  return siblings;
}

/**
 * Flips the lowest bit of the first byte, either in the leaf (place 0) or in a proof hash, counted from 1.
 */
export function flipBit(inclusion: Inclusion, place: number): Inclusion {
  const flip = (bytes: Uint8Array): Uint8Array => bytes.map((byte, at) => (at === 0 ? byte ^ 1 : byte));
  return place === 0
    ? { ...inclusion, leaf: flip(inclusion.leaf) }
    : { ...inclusion, hashes: inclusion.hashes.map((hash, at) => (at === place - 1 ? flip(hash) : hash)) };
}

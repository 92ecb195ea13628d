/** Verifies proofs with the algorithms of RFC 9162, which uses the same trees as RFC 6962. */
import { hashBytes, hashChildren } from "../../src/merkle/hashes.ts";

/** A proof that a leaf is in a tree. */
export interface InclusionProof {
  /** Leaf index from 0. */
  readonly index: number;
  /** Number of leaves in the tree. */
  readonly size: number;
  /** The leaf's SHA-256(0x00 ‖ data). */
  readonly leafHash: Uint8Array;
  readonly hashes: readonly Uint8Array[];
  readonly root: Uint8Array;
}

/** A proof that a tree starts with all leaves of an earlier one. */
export interface ConsistencyProof {
  readonly from: number;
  readonly to: number;
  readonly fromRoot: Uint8Array;
  readonly toRoot: Uint8Array;
  readonly hashes: readonly Uint8Array[];
}

/** Verifies an inclusion proof (RFC 9162, section 2.1.3.2). */
export function verifyInclusion({ index, size, leafHash, hashes, root }: InclusionProof): boolean {
  if (!areSizes(index, size) || index >= size) return false;
  if (![leafHash, root, ...hashes].every(isHash)) return false;
  let [position, last] = [index, size - 1];
  let computed = leafHash;
  for (const sibling of hashes) {
    if (last === 0) return false;
    if (isOdd(position) || position === last) {
      computed = hashChildren(sibling, computed);
      while (!isOdd(position) && position !== 0) [position, last] = [half(position), half(last)];
    } else {
      computed = hashChildren(computed, sibling);
    }
    [position, last] = [half(position), half(last)];
  }
  return last === 0 && isEqual(computed, root);
}

/**
 * Verifies a consistency proof (RFC 9162, section 2.1.4.2). Trees of the same size need equal roots and no
 * hashes. Every tree starts with the empty tree, and that proof has no hashes.
 */
export function verifyConsistency({ from, to, fromRoot, toRoot, hashes }: ConsistencyProof): boolean {
  if (!areSizes(from, to) || from > to) return false;
  if (![fromRoot, toRoot, ...hashes].every(isHash)) return false;
  if (from === to) return hashes.length === 0 && isEqual(fromRoot, toRoot);
  if (from === 0) return hashes.length === 0;
  if (hashes.length === 0) return false;
  // If the earlier tree's size is a power of two, it is a perfect subtree of the later one, and the proof
  // omits its root.
  const [first, ...rest] = isPowerOfTwo(from) ? [fromRoot, ...hashes] : hashes;
  if (first === undefined) return false;
  let [position, last] = [from - 1, to - 1];
  while (isOdd(position)) [position, last] = [half(position), half(last)];
  let [computedFrom, computedTo] = [first, first];
  for (const sibling of rest) {
    if (last === 0) return false;
    if (isOdd(position) || position === last) {
      computedFrom = hashChildren(sibling, computedFrom);
      computedTo = hashChildren(sibling, computedTo);
      while (!isOdd(position) && position !== 0) [position, last] = [half(position), half(last)];
    } else {
      computedTo = hashChildren(computedTo, sibling);
    }
    [position, last] = [half(position), half(last)];
  }
  return last === 0 && isEqual(computedFrom, fromRoot) && isEqual(computedTo, toRoot);
}

// Bitwise operators are limited to 32 bits; sizes have up to 53.
const half = (number: number): number => Math.floor(number / 2);
const isOdd = (number: number): boolean => number % 2 === 1;

function isPowerOfTwo(number: number): boolean {
  let rest = number;
  while (rest > 1 && !isOdd(rest)) rest = half(rest);
  return rest === 1;
}

function areSizes(...sizes: readonly number[]): boolean {
  return sizes.every((size) => Number.isSafeInteger(size) && size >= 0);
}

function isHash(bytes: Uint8Array): boolean {
  return bytes.length === hashBytes;
}

/** A public tree's hashes are not secret, so the comparison may stop at the first difference. */
function isEqual(left: Uint8Array, right: Uint8Array): boolean {
  return Buffer.compare(left, right) === 0;
}

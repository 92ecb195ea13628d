/** A literal implementation of RFC 6962, section 2.1: recursive, over lists of leaf data. */
import { hash } from "node:crypto";

const sha256 = (...parts: readonly Uint8Array[]): Uint8Array =>
  Uint8Array.from(hash("sha256", Buffer.concat(parts), "buffer"));

function split(n: number): number {
  let k = 1;
  while (k * 2 < n) k *= 2;
  return k;
}

/** MTH(D[n]) */
export function treeHash(leaves: readonly Uint8Array[]): Uint8Array {
  if (leaves.length === 0) return sha256();
  if (leaves.length === 1) return sha256(Uint8Array.of(0), leaves[0] as Uint8Array);
  const k = split(leaves.length);
  return sha256(Uint8Array.of(1), treeHash(leaves.slice(0, k)), treeHash(leaves.slice(k)));
}

/** PATH(m, D[n]) */
export function auditPath(m: number, leaves: readonly Uint8Array[]): Uint8Array[] {
  if (leaves.length === 1) return [];
  const k = split(leaves.length);
  if (m < k) return [...auditPath(m, leaves.slice(0, k)), treeHash(leaves.slice(k))];
  return [...auditPath(m - k, leaves.slice(k)), treeHash(leaves.slice(0, k))];
}

/** PROOF(m, D[n]) */
export function consistencyProof(m: number, leaves: readonly Uint8Array[]): Uint8Array[] {
  return subProof(m, leaves, true);
}

function subProof(m: number, leaves: readonly Uint8Array[], isWhole: boolean): Uint8Array[] {
  if (m === leaves.length) return isWhole ? [] : [treeHash(leaves)];
  const k = split(leaves.length);
  if (m <= k) return [...subProof(m, leaves.slice(0, k), isWhole), treeHash(leaves.slice(k))];
  return [...subProof(m - k, leaves.slice(k), false), treeHash(leaves.slice(0, k))];
}

/** Merkle tree hashes (RFC 6962, section 2.1) with SHA-256. */
import { hash } from "node:crypto";

/** Bytes of each hash. */
export const hashBytes = 32;

/** Root of a tree without leaves: the hash of the empty string. */
export const emptyRoot: Uint8Array = Uint8Array.from(hash("sha256", new Uint8Array(), "buffer"));

const leafPrefix = Buffer.of(0x00);
const nodePrefix = Buffer.of(0x01);

/** Hashes a leaf: SHA-256(0x00 ‖ data). */
export function hashLeaf(data: Uint8Array): Uint8Array {
  return hash("sha256", Buffer.concat([leafPrefix, data]), "buffer");
}

/** Hashes an inner node: SHA-256(0x01 ‖ left ‖ right). The prefix distinguishes nodes from leaves. */
export function hashChildren(left: Uint8Array, right: Uint8Array): Uint8Array {
  return hash("sha256", Buffer.concat([nodePrefix, left, right]), "buffer");
}

/**
 * Hashes a perfect tree, from its leaves or from nodes of one height.
 *
 * @param hashes a power of two of them
 */
export function hashPerfect(hashes: readonly Uint8Array[]): Uint8Array {
  let row = hashes;
  while (row.length > 1)
    row = Array.from({ length: row.length / 2 }, (_, i) =>
      // Both indexes are below the length, which is even.
      hashChildren(row[2 * i] as Uint8Array, row[2 * i + 1] as Uint8Array),
    );
  const [root] = row;
  if (root === undefined) throw new RangeError("a perfect tree has at least one leaf");
  return root;
}

/** Combines the hashes of perfect subtrees, from left to right, into the hash of their range. */
export function combine(hashes: readonly Uint8Array[]): Uint8Array {
  return hashes.length === 0 ? emptyRoot : hashes.reduceRight((right, left) => hashChildren(left, right));
}

/**
 * Tiles of a Merkle tree (c2sp.org/tlog-tiles): rows of up to 256 hashes, each row 8 levels above the one
 * below.
 */

/** Number of hashes in a full tile. */
export const tileWidth = 256;

/** Counts the hashes on a level of a tree: one per full tile of the level below, or one per leaf. */
export function countHashes(level: number, size: number): number {
  let hashes = size;
  for (let i = 0; i < level && hashes > 0; i++) hashes = Math.floor(hashes / tileWidth);
  return hashes;
}

/** A tree in memory, read through its tiles like a client of c2sp.org/tlog-tiles. */
import { hashLeaf, hashPerfect } from "../../../src/merkle/hashes.ts";
import { tileWidth } from "../../../src/merkle/tiles.ts";
import type { NodeReader } from "../ranges.ts";
import { placeNode } from "../tile-paths.ts";

/** Leaf data that differs for each index. */
export function leafData(index: number): Uint8Array {
  return Buffer.from(`leaf ${index}`);
}

/** Builds all hash levels of a tree. */
export function buildLevels(size: number): Uint8Array[][] {
  const levels = [Array.from({ length: size }, (_, i) => hashLeaf(leafData(i)))];
  for (;;) {
    const below = levels.at(-1) ?? [];
    if (below.length < tileWidth) return levels;
    levels.push(
      Array.from({ length: Math.floor(below.length / tileWidth) }, (_, i) =>
        hashPerfect(below.slice(i * tileWidth, (i + 1) * tileWidth)),
      ),
    );
  }
}

/** Reads nodes from these levels. */
export function readFrom(levels: readonly Uint8Array[][]): NodeReader {
  return async (nodes) =>
    nodes.map((node) => {
      const { level, tileIndex, offset, count } = placeNode(node);
      const first = tileIndex * tileWidth + offset;
      const hashes = levels[level]?.slice(first, first + count) ?? [];
      if (hashes.length < count) throw new Error(`the tree has no node ${JSON.stringify(node)}`);
      return hashPerfect(hashes);
    });
}

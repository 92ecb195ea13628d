/** Hashes the leaves of a tree, and keeps of them what a comparison with stored hashes and checkpoints needs. */
import { hashBytes, hashLeaf, hashPerfect } from "./hashes.ts";
import { tileWidth } from "./tiles.ts";

/** Leaves from the beginning of a tile up to a size. */
export interface LeafTiles {
  /** The index of the first leaf: a multiple of 256. */
  readonly start: number;
  readonly size: number;
  /** The roots of the full tiles, one after the other. */
  readonly roots: Uint8Array;
  /** For each wanted size, the hashes of the leaves in its last tile, unless that is full. */
  readonly open: ReadonlyMap<number, Uint8Array>;
}

/** Takes leaves in their order. */
export interface LeafHasher {
  /** @param data of the next leaf; the caller may use the bytes again */
  add(data: Uint8Array): void;
  finish(): LeafTiles;
}

/** @param wanted sizes whose root will be computed; the size at the end is one of them anyway */
export function createLeafHasher(start: number, wanted: readonly number[]): LeafHasher {
  const sizes = new Set(wanted);
  const roots: Uint8Array[] = [];
  const open = new Map<number, Uint8Array>();
  let tile: Uint8Array[] = [];
  let size = start;
  const keepOpen = (): void => {
    if (tile.length > 0) open.set(size, Buffer.concat(tile));
  };
  return {
    add(data) {
      tile.push(hashLeaf(data));
      size += 1;
      if (tile.length === tileWidth) {
        roots.push(hashPerfect(tile));
        tile = [];
      }
      if (sizes.has(size)) keepOpen();
    },
    finish() {
      keepOpen();
      return { start, size, roots: Buffer.concat(roots), open };
    },
  };
}

/** Splits hashes that were put one after the other. */
export function splitHashes(hashes: Uint8Array): Uint8Array[] {
  return Array.from({ length: hashes.length / hashBytes }, (_, i) =>
    hashes.subarray(i * hashBytes, (i + 1) * hashBytes),
  );
}

/**
 * Hashes the leaves of a tree and keeps only the hashes needed to compare with stored hashes and checkpoints.
 */
import { hashBytes, hashLeaf, hashPerfect } from "./hashes.ts";
import { tileWidth } from "./tiles.ts";

/** Leaves from the start of a tile up to a size. */
export interface LeafTiles {
  /** Index of the first leaf; a multiple of 256. */
  readonly start: number;
  readonly size: number;
  /** Concatenated roots of the full tiles. */
  readonly roots: Uint8Array;
  /** For each requested size, the concatenated leaf hashes of its last tile, unless that tile is full. */
  readonly open: ReadonlyMap<number, Uint8Array>;
}

/** Hashes leaves in order. */
export interface LeafHasher {
  /** @param data the next leaf; the caller may reuse the bytes */
  add(data: Uint8Array): void;
  finish(): LeafTiles;
}

/** @param wanted sizes whose root will be computed; the final size is always included */
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

/** Splits concatenated hashes. */
export function splitHashes(hashes: Uint8Array): Uint8Array[] {
  return Array.from({ length: hashes.length / hashBytes }, (_, i) =>
    hashes.subarray(i * hashBytes, (i + 1) * hashBytes),
  );
}

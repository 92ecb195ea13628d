/** The tree over a log's records, read and stored in tiles. */
import { LRUCache } from "lru-cache";
import { RecordDamagedError } from "../../src/database/store-error.ts";
import { hashBytes, hashLeaf, hashPerfect } from "../../src/merkle/hashes.ts";
import { countHashes, tileWidth } from "../../src/merkle/tiles.ts";
import type { Store } from "../../src/store/store.ts";
import { createHashStore, describeHash, type StoredHash } from "./hash-store.ts";
import type { NodeReader } from "./ranges.ts";
import type { LeafSource } from "./source.ts";
import { placeNode } from "./tile-paths.ts";

/** Maximum cached tiles of 8 KiB each. */
const cachedTiles = 256;
/** Tiles to compute before storing their roots: 4096 leaves. */
const tilesPerWrite = 16;

/** A log's tree. */
export interface Tree {
  /**
   * Reads a tile's first hashes. The caller knows that the tree has that many.
   *
   * @throws RecordDamagedError
   */
  readTile(level: number, index: number, width: number): Promise<Uint8Array>;
  /**
   * Reads nodes that exist in trees of any size up to the stored one.
   *
   * @throws RecordDamagedError
   */
  readonly readNodes: NodeReader;
  /**
   * Computes and stores the roots of all tiles that are full in a tree of a given size.
   *
   * @throws RecordDamagedError
   */
  catchUp(size: number): Promise<void>;
}

/**
 * Creates the tree.
 *
 * Every returned hash is checked. Tile roots have tags. A full leaf tile is checked against its root, which
 * was computed from records that the server wrote; a tile without a root is computed from such records. A log
 * only grows, so what was read once stays valid, and a longer version of a tile starts with it.
 */
export function createTree(store: Store, source: LeafSource): Tree {
  const hashes = createHashStore(store, source.log);
  const tiles = new LRUCache<string, Uint8Array>({ max: cachedTiles });

  /** Extends a leaf tile's known leaves, from records that the server wrote. */
  const extendLeaves = async (index: number, known: Uint8Array, width: number): Promise<Uint8Array> => {
    const parts = [known];
    let count = known.length / hashBytes;
    while (count < width) {
      const leaves = await source.readTrue(index * tileWidth + count, width - count);
      parts.push(...leaves.map(hashLeaf));
      count += leaves.length;
    }
    return Buffer.concat(parts);
  };
  const readLeaves = async (index: number, known: Uint8Array, width: number): Promise<Uint8Array> => {
    const [root] = await hashes.read(1, index, 1);
    if (root === undefined) return extendLeaves(index, known, width);
    const leaves = (await source.readStored(index * tileWidth, tileWidth)).map(hashLeaf);
    if (leaves.length === tileWidth && Buffer.compare(hashPerfect(leaves), root) === 0)
      return Buffer.concat(leaves);
    // Finds the modified record and names it.
    await extendLeaves(index, new Uint8Array(), tileWidth);
    throw new RecordDamagedError(describeHash(source.log, { level: 1, index }));
  };
  const readHashes = async (level: number, index: number, width: number): Promise<Uint8Array> => {
    const found = await hashes.read(level, index * tileWidth, width);
    if (found.length < width) {
      const missing = { level, index: index * tileWidth + found.length };
      throw new RecordDamagedError(describeHash(source.log, missing));
    }
    return Buffer.concat(found);
  };
  const readTile: Tree["readTile"] = async (level, index, width) => {
    const name = `${level}/${index}`;
    let known = tiles.get(name) ?? new Uint8Array();
    if (known.length < width * hashBytes) {
      known = await (level === 0 ? readLeaves(index, known, width) : readHashes(level, index, width));
      tiles.set(name, known);
    }
    return known.subarray(0, width * hashBytes);
  };

  /** Computes the roots of leaf tiles. */
  const computeRoots = async (from: number, count: number): Promise<StoredHash[]> => {
    const roots: StoredHash[] = [];
    for (let index = from; index < from + count; index++) {
      const tile = await readTile(0, index, tileWidth);
      roots.push({ level: 1, index, hash: hashPerfect(split(tile)) });
    }
    return roots;
  };
  /**
   * Computes and stores the roots of tiles on the levels above, which have one hash per 256 of the level
   * below.
   */
  const storeUpper = async (size: number): Promise<void> => {
    for (let level = 2; countHashes(level, size) > 0; level++) {
      const end = countHashes(level, size);
      for (let index = await hashes.count(level); index < end; index++) {
        const hash = hashPerfect(split(await readTile(level - 1, index, tileWidth)));
        await store.write(({ db }) => hashes.insert(db, [{ level, index, hash }]));
      }
    }
  };

  return {
    readTile,
    async catchUp(size) {
      const end = countHashes(1, size);
      let next = await hashes.count(1);
      while (next < end) {
        const roots = await computeRoots(next, Math.min(tilesPerWrite, end - next));
        await store.write(({ db }) => hashes.insert(db, roots));
        next += roots.length;
      }
      await storeUpper(size);
    },
    async readNodes(nodes) {
      const places = nodes.map(placeNode);
      // Several nodes are often in the same tile, which is read once.
      const widths = new Map<string, (typeof places)[number] & { width: number }>();
      for (const place of places) {
        const name = `${place.level}/${place.tileIndex}`;
        const width = Math.max(widths.get(name)?.width ?? 0, place.offset + place.count);
        widths.set(name, { ...place, width });
      }
      const read = new Map<string, Uint8Array[]>();
      for (const [name, { level, tileIndex, width }] of widths)
        read.set(name, split(await readTile(level, tileIndex, width)));
      return places.map(({ level, tileIndex, offset, count }) =>
        hashPerfect((read.get(`${level}/${tileIndex}`) ?? []).slice(offset, offset + count)),
      );
    },
  };
}

function split(tile: Uint8Array): Uint8Array[] {
  return Array.from({ length: tile.length / hashBytes }, (_, i) =>
    tile.subarray(i * hashBytes, (i + 1) * hashBytes),
  );
}

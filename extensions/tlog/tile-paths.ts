/** Tile paths, and where to find a node's hash in the tiles. */

import { countHashes, tileWidth } from "../../src/merkle/tiles.ts";
import type { TreeNode } from "./ranges.ts";

/** Tree levels between a tile's hashes and the hashes of the tile above. */
const tileHeight = 8;
const maxLevel = 63;

/** A row of hashes. */
export interface Tile {
  /** 0 for leaf hashes; each hash at a higher level is the root of a full tile of the level below. */
  readonly level: number;
  /** Index of the tile in its level. */
  readonly index: number;
  /** Number of hashes: 256, or fewer in a partial tile. */
  readonly width: number;
}

/** The target of a path below `tile/`: a tile, or the entries of a level-0 tile. */
export interface TilePath extends Tile {
  readonly kind: "hashes" | "entries";
}

/** Where a node's hash comes from: it is the root of some of a tile's hashes. */
export interface NodePlace {
  readonly level: number;
  readonly tileIndex: number;
  /** Index of the first hash in the tile. */
  readonly offset: number;
  /** A power of two, up to 128. */
  readonly count: number;
}

/** Finds the tile with the hashes that a node combines. */
export function placeNode({ height, index }: TreeNode): NodePlace {
  const count = 2 ** (height % tileHeight);
  const first = index * count;
  return {
    level: Math.floor(height / tileHeight),
    tileIndex: Math.floor(first / tileWidth),
    offset: first % tileWidth,
    count,
  };
}

/** Counts a tile's hashes in a tree of a given size; 0 if the tree has no such tile. */
export function measureTile({ level, index }: Pick<Tile, "level" | "index">, size: number): number {
  return Math.max(0, Math.min(tileWidth, countHashes(level, size) - index * tileWidth));
}

/** Formats a tile path: "0/x001/x234/067", "1/000.p/17", "entries/000". */
export function formatTilePath({ kind, level, index, width }: TilePath): string {
  const digits = String(index);
  const groups = digits.padStart(Math.ceil(digits.length / 3) * 3, "0").match(/\d{3}/g) ?? [];
  const path = groups.map((group, i) => (i < groups.length - 1 ? `x${group}` : group)).join("/");
  const suffix = width === tileWidth ? "" : `.p/${width}`;
  return `${kind === "entries" ? "entries" : level}/${path}${suffix}`;
}

/** Maximum length of a canonical path: a level, 2^53 in groups of digits, and a width. */
const maxPathLength = 40;

/**
 * Parses a tile path.
 *
 * @returns undefined unless the path is canonical
 */
export function parseTilePath(path: string): TilePath | undefined {
  const match = /^(entries|\d{1,2})\/((?:x\d{3}\/){0,5}\d{3})(?:\.p\/(\d{1,3}))?$/.exec(path);
  if (path.length > maxPathLength || match === null) return undefined;
  const [, level = "", groups = "", width] = match;
  const tile: TilePath = {
    kind: level === "entries" ? "entries" : "hashes",
    level: level === "entries" ? 0 : Number(level),
    index: Number(groups.replaceAll(/\D/g, "")),
    width: width === undefined ? tileWidth : Number(width),
  };
  const isInRange = tile.level <= maxLevel && Number.isSafeInteger((tile.index + 1) * tileWidth);
  // A path is canonical if formatting its tile gives it back: no leading zeros, no width of 256.
  return isInRange && tile.width > 0 && tile.width <= tileWidth && formatTilePath(tile) === path
    ? tile
    : undefined;
}

/** Proofs, compared with known ones and with a literal implementation of RFC 6962. */
import { describe, expect, it } from "vitest";
import { emptyRoot, hashLeaf, hashPerfect } from "../../../src/merkle/hashes.ts";
import { tileWidth } from "../../../src/merkle/tiles.ts";
import { flipBit } from "../../../test/support/bytes.ts";
import { auditPath, consistencyProof, treeHash } from "../../../test/support/naive-tree.ts";
import { proveConsistency, proveInclusion } from "../proofs.ts";
import { computeRoot, type NodeReader } from "../ranges.ts";
import { placeNode } from "../tile-paths.ts";
import { verifyConsistency, verifyInclusion } from "../verify-proofs.ts";

const hex = (hashes: readonly Uint8Array[]): string[] =>
  hashes.map((hash) => Buffer.from(hash).toString("hex"));

/** Leaf data that differs for each index. */
function leafData(index: number): Uint8Array {
  return Buffer.from(`leaf ${index}`);
}

/** Builds all hash levels of a tree. */
function buildLevels(size: number): Uint8Array[][] {
  const levels = [Array.from({ length: size }, (_, i) => hashLeaf(leafData(i)))];
  for (;;) {
    const below = levels.at(-1) ?? [];
    if (below.length < tileWidth) return levels;
    const tiles = below.flatMap((_, i) => (i % tileWidth > 0 ? [] : [below.slice(i, i + tileWidth)]));
    levels.push(tiles.filter(({ length }) => length === tileWidth).map(hashPerfect));
  }
}

/** Reads nodes of these levels through tiles, like a client of c2sp.org/tlog-tiles. */
function readFrom(levels: readonly Uint8Array[][]): NodeReader {
  return async (nodes) =>
    nodes.map((node) => {
      const { level, tileIndex, offset, count } = placeNode(node);
      const first = tileIndex * tileWidth + offset;
      const hashes = levels[level]?.slice(first, first + count) ?? [];
      if (hashes.length < count) throw new Error(`the tree has no node ${JSON.stringify(node)}`);
      return hashPerfect(hashes);
    });
}

const most = 300;
const read = readFrom(buildLevels(most));
const leaves = Array.from({ length: most }, (_, i) => leafData(i));
const sizes = leaves.map((_, i) => i + 1);
/** Small sizes, and sizes near a power of two and at the edge of a tile. */
const chosen = sizes.filter((size) => size < 18 || [31, 32, 33, 255, 256, 257, 300].includes(size));

describe("the root", () => {
  it("matches RFC 6962 for every size up to 300", async () => {
    expect(hex([emptyRoot, await computeRoot(0, read)])).toEqual(
      Array(2).fill("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    );
    for (const size of sizes) {
      const roots = [await computeRoot(size, read), treeHash(leaves.slice(0, size))];
      expect(new Set(hex(roots)).size, `different roots for size ${size}`).toBe(1);
    }
  });
});

describe("an inclusion proof", () => {
  it("has RFC 6962's hashes, and verifies only unchanged", async () => {
    for (const size of chosen) {
      const root = treeHash(leaves.slice(0, size));
      for (let index = 0; index < size; index += size > 30 ? 7 : 1) {
        const hashes = await proveInclusion(index, size, read);
        expect(hex(hashes)).toEqual(hex(auditPath(index, leaves.slice(0, size))));
        const proof = { index, size, leafHash: hashLeaf(leafData(index)), hashes, root };
        const [first = root, ...others] = hashes;
        const wrong = [
          { ...proof, root: flipBit(root) },
          { ...proof, leafHash: flipBit(proof.leafHash) },
          { ...proof, leafHash: hashLeaf(leafData(index + 1)) },
          { ...proof, index: size },
          { ...proof, index: -1 },
          { ...proof, index: index + 0.5 },
          { ...proof, hashes: [...hashes, root] },
          { ...proof, root: root.subarray(1) },
        ];
        const wrongWithHashes = [
          { ...proof, index: index === 0 ? 1 : index - 1 },
          { ...proof, hashes: others },
          { ...proof, hashes: [flipBit(first), ...others] },
          { ...proof, hashes: hashes.slice(0, -1) },
        ];
        const all = [proof, ...wrong, ...(hashes.length > 0 ? wrongWithHashes : [])];
        expect(all.filter(verifyInclusion)).toEqual([proof]);
      }
    }
  });

  it("does not exist for a leaf beyond the tree", () => {
    expect(() => proveInclusion(5, 5, read)).toThrow(RangeError);
    expect(() => proveInclusion(-1, 5, read)).toThrow(RangeError);
  });
});

describe("a consistency proof", () => {
  it("has RFC 6962's hashes, and verifies only unchanged", async () => {
    for (const to of chosen)
      for (const from of chosen.filter((size) => size < to)) {
        const hashes = await proveConsistency(from, to, read);
        expect(hex(hashes)).toEqual(hex(consistencyProof(from, leaves.slice(0, to))));
        const [fromRoot, toRoot] = [treeHash(leaves.slice(0, from)), treeHash(leaves.slice(0, to))];
        const proof = { from, to, fromRoot, toRoot, hashes };
        const [first = toRoot, ...others] = hashes;
        const wrong = [
          { ...proof, fromRoot: flipBit(fromRoot) },
          { ...proof, toRoot: flipBit(toRoot) },
          { ...proof, fromRoot: toRoot },
          { ...proof, hashes: others },
          { ...proof, hashes: [flipBit(first), ...others] },
          { ...proof, hashes: [...hashes, toRoot] },
          { ...proof, from: to, to: from },
          { ...proof, from: 0 },
          { ...proof, from: from + 0.5 },
        ];
        expect([proof, ...wrong].filter(verifyConsistency)).toEqual([proof]);
      }
  });

  it("between trees of the same size has no hashes and needs equal roots", async () => {
    const root = await computeRoot(9, read);
    expect(await proveConsistency(9, 9, read)).toEqual([]);
    const proof = { from: 9, to: 9, fromRoot: root, toRoot: root, hashes: [] };
    expect(verifyConsistency(proof)).toBe(true);
    expect(verifyConsistency({ ...proof, toRoot: flipBit(root) })).toBe(false);
    expect(verifyConsistency({ ...proof, hashes: [root] })).toBe(false);
  });

  it("from the empty tree has no hashes, and RFC 6962 defines none", async () => {
    const proof = { from: 0, to: 9, fromRoot: emptyRoot, toRoot: await computeRoot(9, read), hashes: [] };
    expect(verifyConsistency(proof)).toBe(true);
    expect(verifyConsistency({ ...proof, hashes: [emptyRoot] })).toBe(false);
    expect(() => proveConsistency(0, 9, read)).toThrow(RangeError);
  });
});

describe("the eight-leaf tree from the Certificate Transparency implementations' own tests", () => {
  const leaves = " 00 10 2021 3031 40414243 5051525354555657 606162636465666768696a6b6c6d6e6f".split(" ");
  const roots = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
  ] as const;
  const hashes = leaves.map((leaf) => hashLeaf(Buffer.from(leaf, "hex")));
  const read = async (nodes: readonly { height: number; index: number }[]) =>
    nodes.map(({ height, index }) =>
      hashPerfect(hashes.slice(index * 2 ** height, (index + 1) * 2 ** height)),
    );

  it("has the known root at each size, and the known proofs", async () => {
    expect(hex(await Promise.all(roots.map((_, i) => computeRoot(i + 1, read))))).toEqual(roots);
    expect(hex(await proveInclusion(0, 8, read))).toEqual([
      "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
      "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
      "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ]);
    expect(hex(await proveInclusion(2, 3, read))).toEqual([roots[1]]);
    expect(hex(await proveConsistency(6, 8, read))).toEqual([
      "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
      "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
      roots[3],
    ]);
  });
});

describe("a tree with more than two levels of tiles", () => {
  const size = 66_000;
  const large = readFrom(buildLevels(size));

  it("proves leaves and earlier sizes around 65,536", { timeout: 180_000 }, async () => {
    const all = Array.from({ length: size }, (_, i) => leafData(i));
    expect(hex([await computeRoot(size, large)])).toEqual(hex([treeHash(all)]));
    const samples = [1, 2, 255, 256, 257, 511, 32_768, 65_279, 65_280, 65_535, 65_536, 65_537, 65_793, size];
    for (const to of samples) {
      const toRoot = await computeRoot(to, large);
      for (const from of samples.filter((sample) => sample <= to)) {
        const hashes = await proveConsistency(from, to, large);
        const fromRoot = await computeRoot(from, large);
        expect(verifyConsistency({ from, to, fromRoot, toRoot, hashes })).toBe(true);
        const index = from - 1;
        const path = await proveInclusion(index, to, large);
        const leafHash = hashLeaf(leafData(index));
        expect(verifyInclusion({ index, size: to, leafHash, hashes: path, root: toRoot })).toBe(true);
      }
    }
    expect(hex(await proveInclusion(65_537, size, large))).toEqual(hex(auditPath(65_537, all)));
  });
});

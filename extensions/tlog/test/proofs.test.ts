/** Proofs, compared with a literal implementation of RFC 6962. */
import { describe, expect, it } from "vitest";
import { emptyRoot, hashLeaf } from "../../../src/merkle/hashes.ts";
import { auditPath, consistencyProof, treeHash } from "../../../test/support/naive-tree.ts";
import { proveConsistency, proveInclusion } from "../proofs.ts";
import { computeRoot } from "../ranges.ts";
import { verifyConsistency, verifyInclusion } from "../verify-proofs.ts";
import { buildLevels, leafData, readFrom } from "./tile-tree.ts";

const hex = (hashes: readonly Uint8Array[]): string[] =>
  hashes.map((hash) => Buffer.from(hash).toString("hex"));
const flip = (hash: Uint8Array): Uint8Array => hash.map((byte, i) => (i === 0 ? byte ^ 1 : byte));

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
    const roots = await Promise.all(sizes.map((size) => computeRoot(size, read)));
    expect(hex(roots)).toEqual(hex(sizes.map((size) => treeHash(leaves.slice(0, size)))));
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
          { ...proof, root: flip(root) },
          { ...proof, leafHash: flip(proof.leafHash) },
          { ...proof, leafHash: hashLeaf(leafData(index + 1)) },
          { ...proof, index: size },
          { ...proof, index: -1 },
          { ...proof, index: index + 0.5 },
          { ...proof, hashes: [...hashes, root] },
          { ...proof, root: root.subarray(1) },
          ...(hashes.length > 0
            ? [
                { ...proof, index: index === 0 ? 1 : index - 1 },
                { ...proof, hashes: others },
                { ...proof, hashes: [flip(first), ...others] },
                { ...proof, hashes: hashes.slice(0, -1) },
              ]
            : []),
        ];
        expect([proof, ...wrong].filter(verifyInclusion)).toEqual([proof]);
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
          { ...proof, fromRoot: flip(fromRoot) },
          { ...proof, toRoot: flip(toRoot) },
          { ...proof, fromRoot: toRoot },
          { ...proof, hashes: others },
          { ...proof, hashes: [flip(first), ...others] },
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
    expect(verifyConsistency({ ...proof, toRoot: flip(root) })).toBe(false);
    expect(verifyConsistency({ ...proof, hashes: [root] })).toBe(false);
  });

  it("from the empty tree has no hashes, and RFC 6962 defines none", async () => {
    const proof = { from: 0, to: 9, fromRoot: emptyRoot, toRoot: await computeRoot(9, read), hashes: [] };
    expect(verifyConsistency(proof)).toBe(true);
    expect(verifyConsistency({ ...proof, hashes: [emptyRoot] })).toBe(false);
    expect(() => proveConsistency(0, 9, read)).toThrow(RangeError);
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

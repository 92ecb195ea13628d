import { describe, expect, it } from "vitest";
import { auditPath, treeHash } from "../../../test/support/naive-tree.ts";
import { buildTree, flipBit, followProof, type Inclusion, listEnds } from "../../page/stories/log/merkle.ts";
import { describeProof, drawTree, nameRange } from "../../page/stories/log/tree.ts";

const data = Array.from({ length: 13 }, (_none, at) => Uint8Array.of(at));

function prove(index: number, size: number): Inclusion {
  const leaf = data[index];
  if (leaf === undefined) throw new Error("the leaf does not exist");
  return { index, size, leaf, hashes: auditPath(index, data.slice(0, size)) };
}

describe("an inclusion proof, checked in the browser", () => {
  for (const size of [1, 2, 3, 7, 8, 13])
    it(`leads from each of ${size} leaves to the RFC 6962 root`, async () => {
      const root = treeHash(data.slice(0, size));
      for (let index = 0; index < size; index += 1) {
        const nodes = await followProof(prove(index, size));
        expect(nodes.at(-1)).toMatchObject({ start: 0, end: size });
        expect(Buffer.compare(nodes.at(-1)?.hash ?? Buffer.of(), root)).toBe(0);
      }
    });

  it("leads elsewhere if any bit is flipped, and only hashes above it are wrong", async () => {
    const proof = prove(2, 7);
    const genuine = await followProof(proof);
    for (let place = 0; place <= proof.hashes.length; place += 1) {
      const nodes = await followProof(flipBit(proof, place));
      const { nodes: drawn } = drawTree(buildTree(7), genuine, nodes);
      const wrong = drawn.filter(({ state }) => state === "wrong").map(({ node }) => nameRange(node));
      expect(wrong).toContain("leaves 0 to 6");
      expect(wrong).toHaveLength(place === 0 ? proof.hashes.length + 1 : proof.hashes.length + 2 - place);
    }
  });

  it("is rejected with too few hashes", async () => {
    const proof = prove(2, 7);
    await expect(followProof({ ...proof, hashes: proof.hashes.slice(1) })).rejects.toThrow(RangeError);
  });
});

describe("the picture of a tree", () => {
  it("is complete for a small log", () => {
    expect(listEnds(buildTree(7)).map(nameRange)).toEqual([0, 1, 2, 3, 4, 5, 6].map((at) => `leaf ${at}`));
  });

  it("folds everything off the path to the leaf for a large log", () => {
    const starts = listEnds(buildTree(1000, 998)).map(({ start }) => start);
    expect(starts).toEqual([0, 512, 768, 896, 960, 992, 996, 998, 999]);
  });

  it("keeps every node inside", () => {
    const { nodes, width, height } = drawTree(buildTree(7), []);
    expect(nodes).toHaveLength(13);
    expect(nodes.every(({ x, y }) => x > 0 && x < width && y > 0 && y < height)).toBe(true);
  });

  it("describes in words what the proof combines", async () => {
    const nodes = await followProof(prove(0, 3));
    expect(describeProof(nodes, true)).toBe(
      "The hash of leaf 0 is computed here, then combined with the given hashes of leaf 1 and leaf 2. The result is the checkpoint's root.",
    );
    expect(describeProof([], false)).toBe("No leaf is selected.");
  });
});

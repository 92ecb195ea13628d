import { describe, expect, it } from "vitest";
import type { Findings } from "../../src/client/tunnel-end.ts";
import { auditPath, treeHash } from "../../test/support/naive-tree.ts";
import * as diagram from "../page/parts/diagrams/sequence.ts";
import {
  box,
  describeLife,
  drawTransition,
  isWalked,
  states,
  transitions,
} from "../page/stories/keys/lifecycle.ts";
import { buildTree, flipBit, followProof, type Inclusion, listEnds } from "../page/stories/log/merkle.ts";
import { describeProof, drawTree, nameRange } from "../page/stories/log/tree.ts";
import { judgeHandshake } from "../page/stories/tunnel/handshake.ts";

const [, disable, enable] = transitions;
if (!disable || !enable) throw new Error("a key can be disabled and enabled");

describe("a key's life cycle", () => {
  it.each(transitions)("has a line from the edge of $from to the edge of $to", (transition) => {
    const { start, end } = drawTransition(transition);
    const isOutside = ({ x, y }: typeof start, name: keyof typeof states) =>
      Math.abs(x - states[name].x) > box.width / 2 - 8 || Math.abs(y - states[name].y) > box.height / 2 - 8;
    expect([isOutside(start, transition.from), isOutside(end, transition.to)]).toEqual([true, true]);
  });

  it("keeps two lines between the same boxes apart, including their labels", () => {
    const [down, up] = [drawTransition(disable), drawTransition(enable)];
    expect(Math.abs(down.start.x - up.end.x)).toBeGreaterThan(10);
    expect(Math.abs(down.label.x - up.label.x)).toBeGreaterThan(40);
  });

  it("marks only transitions that were taken", () => {
    expect([disable, enable].map((one) => isWalked(["ACTIVE", "DISABLED"], one))).toEqual([true, false]);
  });

  it("describes the current state and the next ones in words", () => {
    expect(describeLife([])).toBe("It does not exist yet.");
    const rotated = "It was ACTIVE. It is ROTATED. Next: schedule: DESTROY_SCHEDULED; destroy: DESTROYED.";
    expect(describeLife(["ACTIVE", "ROTATED"])).toBe(rotated);
    expect(describeLife(["DESTROYED"])).toBe("It is DESTROYED. This state is final.");
  });
});

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

const parties: readonly diagram.Party[] = [
  { name: "Your browser" },
  { name: "Mallory", isAttacker: true },
  { name: "Gateway" },
];

describe("a sequence diagram", () => {
  it("draws arrows between the middles of two parties, in either direction", () => {
    expect(diagram.placeArrow({ from: 0, to: 2 })).toEqual({ start: 2, end: 6 });
    expect(diagram.placeArrow({ from: 2, to: 1 })).toEqual({ start: 4, end: 6 });
  });

  it("gives texts more room than their arrows, within the diagram", () => {
    expect(diagram.placeText({ from: 1, to: 2 }, 4, "valid")).toEqual({ start: 3, end: 7 });
    expect(diagram.placeText({ from: 1, to: 2 }, 4, "refused: SIGNATURE_INVALID")).toEqual({
      start: 1,
      end: 9,
    });
    expect(diagram.placeText({ from: 0, to: 3 }, 4, "valid")).toEqual({ start: 1, end: 9 });
  });

  it("keeps adjacent boxes apart", () => {
    const boxes = [0, 1, 2].map((at) => diagram.placeBox(at, false, 3));
    expect(boxes.map(({ start, end }) => [start, end])).toEqual([1, 3, 5].map((at) => [at, at + 2]));
    expect(diagram.placeBox(2, true, 3)).toEqual({ start: 4, end: 7 });
  });

  it("names the parties for readers who do not see the lines", () => {
    const attacked = "Mallory (attacker) to Gateway";
    expect(diagram.nameParties(diagram.attack(1, 2, "packet"), parties)).toBe(attacked);
    expect(diagram.nameParties(diagram.find([0, 2], "secret"), parties)).toBe("Your browser and Gateway");
  });

  it("has no size and no verdict before they are known", () => {
    expect(diagram.withSize("packet", undefined)).toBe("packet");
    expect(diagram.withSize("packet", new Uint8Array(1568))).toBe("packet, 1,568 bytes");
    expect([diagram.judge(undefined, "yes", "no"), diagram.refuse(undefined)]).toEqual([
      undefined,
      undefined,
    ]);
  });
});

describe("the verdict on a handshake", () => {
  const good: Findings = { isOurTranscript: true, isSigned: true, isConfirmed: true };

  it("names the first problem", () => {
    const faults = [
      { ...good, isOurTranscript: false, isSigned: false },
      { ...good, isSigned: false, isConfirmed: false },
      { ...good, isConfirmed: false },
    ];
    expect(faults.map((findings) => judgeHandshake(findings, "accepted")?.says)).toEqual([
      "refused: it is not about your key",
      "refused: not the gateway's signature",
      "refused: different session key",
    ]);
  });

  it("reports a successful attack", () => {
    expect(judgeHandshake(good, "accepted")).toEqual({ holds: true, says: "accepted" });
  });
});

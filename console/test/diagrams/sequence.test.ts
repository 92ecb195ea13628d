import { describe, expect, it } from "vitest";
import type { Findings } from "../../../src/client/tunnel-end.ts";
import * as diagram from "../../page/parts/diagrams/sequence.ts";
import { judgeHandshake } from "../../page/stories/tunnel/handshake.ts";

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
    expect(diagram.nameParties(diagram.attack(1, 2, "packet"), parties)).toBe(
      "Mallory (attacker) to Gateway",
    );
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

import { describe, expect, it } from "vitest";
import type { Findings } from "../../../src/client/tunnel-end.ts";
import { Failure } from "../../../src/console/page/failure.ts";
import {
  attack,
  drawAct,
  find,
  findNext,
  judge,
  nameParties,
  placeArrow,
  placeBox,
  placeText,
  refuse,
  send,
  withSize,
} from "../../../src/console/page/parts/diagrams/sequence.ts";
import {
  drawTunnel,
  parties,
  type TunnelSteps,
  titles,
} from "../../../src/console/page/stories/tunnel/sequence.ts";
import { makeDoneStep, makeFailedStep, makeReadyStep } from "./steps.ts";

describe("a sequence diagram", () => {
  it("draws an arrow from the middle of a party to the middle of another, in either direction", () => {
    expect(placeArrow({ from: 0, to: 2 })).toEqual({ start: 2, end: 6 });
    expect(placeArrow({ from: 2, to: 1 })).toEqual({ start: 4, end: 6 });
  });

  it("gives texts more room than their arrows, and never more than there is", () => {
    expect(placeText({ from: 1, to: 2 }, 4)).toEqual({ start: 3, end: 7 });
    expect(placeText({ from: 0, to: 3 }, 4)).toEqual({ start: 1, end: 9 });
  });

  it("keeps boxes apart that are beside each other", () => {
    expect([0, 1, 2].map((at) => placeBox(at, false, 3))).toEqual([
      { start: 1, end: 3 },
      { start: 3, end: 5 },
      { start: 5, end: 7 },
    ]);
    expect(placeBox(2, true, 3)).toEqual({ start: 4, end: 7 });
  });

  it("names the parties for readers who do not see the lines", () => {
    expect(nameParties(attack(1, 2, "packet"), parties)).toBe("Mallory (attacker) to Gateway");
    expect(nameParties(find([0, 2], "secret"), parties)).toBe("Your browser and Gateway");
  });

  it("names a size only where it is known", () => {
    expect(withSize("packet", undefined)).toBe("packet");
    expect(withSize("packet", new Uint8Array(1568))).toBe("packet, 1,568 bytes");
  });

  it("offers the first step that is not done", () => {
    const acts = [makeDoneStep(1), makeFailedStep("UNREACHABLE"), makeReadyStep()].map((step, at) =>
      drawAct(`step ${at}`, step, () => []),
    );
    expect(findNext(acts)).toBe(1);
    expect(findNext(acts.slice(0, 1))).toBeUndefined();
    expect(acts.map(({ failure }) => failure)).toEqual([undefined, "UNREACHABLE", undefined]);
  });

  it("has no verdict before there is one", () => {
    expect([judge(undefined, "yes", "no"), refuse(undefined)]).toEqual([undefined, undefined]);
    expect(send(0, 1, "packet", judge(true, "yes", "no")).verdict).toEqual({ holds: true, says: "yes" });
  });
});

const names = Object.keys(titles) as (keyof TunnelSteps)[];

/** A tunnel in which only some steps are done. */
function makeTunnel(done: Partial<Record<keyof TunnelSteps, unknown>>): TunnelSteps {
  const steps = names.map((name) => [name, name in done ? makeDoneStep(done[name]) : makeReadyStep()]);
  // The values are what the tests give the drawing to read.
  return Object.fromEntries(steps) as unknown as TunnelSteps;
}

function verdictsOf(steps: TunnelSteps, name: keyof TunnelSteps): (string | undefined)[] {
  const act = drawTunnel(steps).find(({ title }) => title === titles[name]);
  return (act?.rows ?? []).map(({ verdict }) => verdict && `${verdict.holds} ${verdict.says}`);
}

describe("the diagram of a tunnel", () => {
  it("shows all steps in the order of the story before any is done, without a verdict", () => {
    const acts = drawTunnel(makeTunnel({}));
    expect(acts.map(({ title }) => title)).toEqual(names.map((name) => titles[name]));
    expect(acts.flatMap(({ rows }) => rows).filter(({ verdict }) => verdict !== undefined)).toEqual([]);
    expect(acts.every(({ rows }) => rows.length > 0)).toBe(true);
  });

  it("stops a replayed packet, with the gateway's reason", () => {
    const repeating = new Failure("PACKET_REPLAYED", "ALREADY_EXISTS", "again");
    expect(verdictsOf(makeTunnel({ repeating }), "repeating")).toEqual(["false refused: PACKET_REPLAYED"]);
  });

  it("says that an attack works if it does", () => {
    const altering = {
      isOpened: true,
      refusal: new Failure("PACKET_INVALID", "INVALID_ARGUMENT", "changed"),
    };
    expect(verdictsOf(makeTunnel({ altering }), "altering")).toEqual([
      "true opened",
      "false refused: PACKET_INVALID",
    ]);
  });

  it("names what is wrong with each handshake of the attacker", () => {
    const good: Findings = { isOurTranscript: true, isSigned: true, isConfirmed: true };
    const catching = {
      passedOn: { ...good, isOurTranscript: false },
      rewritten: { ...good, isSigned: false },
      resigned: { ...good, isConfirmed: false },
    };
    expect(verdictsOf(makeTunnel({ catching }), "catching")).toEqual([
      "false refused: it is not about your key",
      "false refused: not the gateway's signature",
      "false refused: another session key",
    ]);
    expect(verdictsOf(makeTunnel({ catching: { ...catching, resigned: good } }), "catching")[2]).toBe(
      "true accepted",
    );
  });
});

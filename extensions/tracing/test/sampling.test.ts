import { describe, expect, it } from "vitest";
import { createSampler, type Sampling } from "../sampling.ts";

/** Counts how many of 1,000 calls within a second are chosen, on a clock of the test. */
function countChosen(sampling: Partial<Sampling>, parent: boolean | undefined, seconds = 1) {
  let nowMs = 0;
  let calls = 0;
  // Chance goes through all thousandths in turn.
  const chance = (): number => (calls % 1000) / 1000;
  const settings = { ratio: 0, followsCallers: true, maxFollowedPerSecond: 10, ...sampling };
  const sampler = createSampler(settings, chance, () => nowMs);
  let chosen = 0;
  for (; calls < 1000 * seconds; calls += 1) {
    nowMs += 1;
    if (sampler.isChosen(parent)) chosen += 1;
  }
  return { chosen, limited: sampler.limited };
}

describe("the choice of calls to trace", () => {
  it("takes the share that the operator wants, of calls without a trace of their caller", () => {
    expect(countChosen({ ratio: 0.25 }, undefined).chosen).toBe(250);
    expect(countChosen({ ratio: 1 }, undefined).chosen).toBe(1000);
    expect(countChosen({ ratio: 0 }, undefined).chosen).toBe(0);
  });

  it("follows callers who record their traces, but only some a second: a hostile caller always does", () => {
    const { chosen, limited } = countChosen({ maxFollowedPerSecond: 10 }, true, 10);
    // A burst of ten, and ten for each second.
    expect(chosen).toBeGreaterThanOrEqual(100);
    expect(chosen).toBeLessThanOrEqual(110);
    expect(limited).toBe(10_000 - chosen);
  });

  it("follows none with a limit of 0", () => {
    expect(countChosen({ maxFollowedPerSecond: 0 }, true)).toEqual({ chosen: 0, limited: 1000 });
  });

  it("takes the share also of calls beyond that limit", () => {
    const { chosen } = countChosen({ ratio: 0.5 }, true);
    expect(chosen).toBeGreaterThanOrEqual(500);
    expect(chosen).toBeLessThanOrEqual(520);
  });

  it("leaves out calls whose callers do not record them", () => {
    expect(countChosen({ ratio: 1 }, false).chosen).toBe(0);
  });

  it("does not look at callers if the sampler is not based on the parent", () => {
    expect(countChosen({ ratio: 0, followsCallers: false }, true).chosen).toBe(0);
    expect(countChosen({ ratio: 1, followsCallers: false }, false).chosen).toBe(1000);
  });
});

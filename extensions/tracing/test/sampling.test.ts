import { describe, expect, it } from "vitest";
import { createSampler, type Sampling } from "../sampling.ts";

/** Counts how many of 1,000 calls within a second are sampled, on a fake clock. */
function countChosen(sampling: Partial<Sampling>, parent: boolean | undefined, seconds = 1) {
  let nowMs = 0;
  let calls = 0;
  // The random numbers run through all thousandths in turn.
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

describe("sampling", () => {
  it("selects the configured share of calls without a caller's trace", () => {
    expect(countChosen({ ratio: 0.25 }, undefined).chosen).toBe(250);
    expect(countChosen({ ratio: 1 }, undefined).chosen).toBe(1000);
    expect(countChosen({ ratio: 0 }, undefined).chosen).toBe(0);
  });

  it("follows callers that record their traces up to a rate limit, because a hostile caller always does", () => {
    const { chosen, limited } = countChosen({ maxFollowedPerSecond: 10 }, true, 10);
    // A burst of ten, and ten for each second.
    expect(chosen).toBeGreaterThanOrEqual(100);
    expect(chosen).toBeLessThanOrEqual(110);
    expect(limited).toBe(10_000 - chosen);
  });

  it("follows no caller with a limit of 0", () => {
    expect(countChosen({ maxFollowedPerSecond: 0 }, true)).toEqual({ chosen: 0, limited: 1000 });
  });

  it("applies the share to calls beyond the limit", () => {
    const { chosen } = countChosen({ ratio: 0.5 }, true);
    expect(chosen).toBeGreaterThanOrEqual(500);
    expect(chosen).toBeLessThanOrEqual(520);
  });

  it("skips calls whose callers do not record them", () => {
    expect(countChosen({ ratio: 1 }, false).chosen).toBe(0);
  });

  it("ignores the caller's decision if the sampler is not parent-based", () => {
    expect(countChosen({ ratio: 0, followsCallers: false }, true).chosen).toBe(0);
    expect(countChosen({ ratio: 1, followsCallers: false }, false).chosen).toBe(1000);
  });
});

import { describe, expect, it } from "vitest";
import { compareSnapshots } from "../../../src/client/server-activity.ts";
import { findNewest, type Interval } from "../../page/views/activity/intervals.ts";
import { drawDots, drawLine, roundUp } from "../../page/views/activity/line.ts";

describe("findNewest", () => {
  const nothing = compareSnapshots({ atMs: 0, samples: [] }, { atMs: 2000, samples: [] });
  const at = (seconds: number, callsPerSecond: number): Interval => ({ ...nothing, seconds, callsPerSecond });
  const isBusy = ({ callsPerSecond }: Interval): boolean => callsPerSecond > 0;

  it("finds the newest interval with calls, and its age", () => {
    const found = findNewest([at(2, 9), at(2, 25), at(2, 0), at(2.01, 0)], isBusy);
    expect(found).toEqual({ interval: at(2, 25), seconds: 4 });
  });

  it("finds nothing before the first call", () => {
    expect(findNewest([at(2, 0)], isBusy)).toBeUndefined();
    expect(findNewest([], isBusy)).toBeUndefined();
  });
});

describe("a chart line", () => {
  it("ends at the right edge, and restarts after a gap", () => {
    expect(drawLine([0, undefined, 5, 10], 4, 10)).toBe("M0.0 156.0M400.0 80.0L600.0 4.0");
    expect(drawLine([10], 3, 10)).toBe("M600.0 4.0");
  });

  it("shows a single point between two gaps as a dot", () => {
    expect(drawDots([5, undefined, 5, 10], 4, 10)).toBe("M0.0 80.0h0");
    expect(drawDots([undefined, 10, undefined], 3, 10)).toBe("M300.0 4.0h0");
    expect(drawDots([5, 10], 3, 10)).toBe("");
  });

  it("has a scale that ends at a round number", () => {
    expect([0, 0.4, 1.2, 3, 7, 10, 34].map(roundUp)).toEqual([1, 1, 2, 5, 10, 10, 50]);
  });
});

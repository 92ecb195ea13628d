/** Chart data per interval. */
import type { Activity as Interval } from "../../../../src/client/server-activity.ts";

export type { Interval };

/**
 * Finds the newest interval with data, so that a number stays visible long enough to read.
 *
 * @returns the interval and the seconds since then; undefined if no interval has data
 */
export function findNewest(
  intervals: readonly Interval[],
  isShown: (interval: Interval) => boolean,
): { readonly interval: Interval; readonly seconds: number } | undefined {
  const at = intervals.findLastIndex(isShown);
  const interval = intervals[at];
  const passed = intervals.slice(at + 1).reduce((sum, { seconds }) => sum + seconds, 0);
  return interval && { interval, seconds: Math.round(passed) };
}

/** Refused or failed calls per second. */
export function countFailures({ failures }: Interval): number {
  return Object.values(failures).reduce((sum, perSecond) => sum + perSecond, 0);
}

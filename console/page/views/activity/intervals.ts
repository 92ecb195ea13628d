/** What the charts show of intervals. */
import type { Activity as Interval } from "../../../../src/client/server-activity.ts";

export type { Interval };

/**
 * Finds the newest interval in which there was something to show, so that a number stays long enough to be read.
 *
 * @returns the interval, and the seconds since then; undefined if there was none
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

/** Calls per second that were refused or failed. */
export function countFailures({ failures }: Interval): number {
  return Object.values(failures).reduce((sum, perSecond) => sum + perSecond, 0);
}

/** The calls between two readings of the counters. */
import { estimateQuantile } from "../../../../src/client/prometheus-text.ts";
import type { MethodCounts, Snapshot } from "./metrics-text.ts";

/** The activity of all calls in one interval. */
export interface Rates {
  /** The end of the interval, in milliseconds of the page's clock. */
  readonly at: number;
  readonly callsPerSecond: number;
  readonly failuresPerSecond: number;
  /** Milliseconds that half, and 95 of 100 calls stayed below; undefined if there were none. */
  readonly medianMs: number | undefined;
  readonly p95Ms: number | undefined;
}

export function compareSnapshots(before: Snapshot, after: Snapshot): Rates {
  const seconds = Math.max(0.001, (after.at - before.at) / 1000);
  const changes = [...countSince(before, after).values()];
  const sum = (field: keyof MethodCounts): number => changes.reduce((all, counts) => all + counts[field], 0);
  const durations = new Map(
    [...after.durations].map(([bound, count]) => [bound, subtract(count, before.durations.get(bound) ?? 0)]),
  );
  return {
    at: after.at,
    callsPerSecond: (sum("answered") + sum("failed")) / seconds,
    failuresPerSecond: sum("failed") / seconds,
    medianMs: estimateMs(durations, 0.5),
    p95Ms: estimateMs(durations, 0.95),
  };
}

/**
 * Finds the newest interval in which there was something to show, so that a number stays long enough to be read.
 *
 * @returns the interval, and the seconds since then; undefined if there was none
 */
export function findNewest(
  rates: readonly Rates[],
  isShown: (rates: Rates) => boolean,
): { readonly rates: Rates; readonly seconds: number } | undefined {
  const found = rates.findLast(isShown);
  return found && { rates: found, seconds: Math.round(((rates.at(-1)?.at ?? 0) - found.at) / 1000) };
}

/** The counts of each RPC that was called between two readings. */
export function countSince(before: Snapshot, after: Snapshot): Map<string, MethodCounts> {
  const changes = new Map<string, MethodCounts>();
  for (const [method, now] of after.methods) {
    const then = before.methods.get(method);
    const change = {
      answered: subtract(now.answered, then?.answered ?? 0),
      failed: subtract(now.failed, then?.failed ?? 0),
      seconds: subtract(now.seconds, then?.seconds ?? 0),
      measured: subtract(now.measured, then?.measured ?? 0),
    };
    if (change.answered + change.failed > 0) changes.set(method, change);
  }
  return changes;
}

/** A counter that went down began again at zero, because the server was started again. */
function subtract(now: number, then: number): number {
  return now < then ? now : now - then;
}

/**
 * Estimates a quantile of durations in milliseconds.
 *
 * @param durations cumulative, by upper bound in seconds
 * @returns for the last bucket, which has no bound, the bound below it
 */
export function estimateMs(durations: ReadonlyMap<number, number>, share: number): number | undefined {
  const buckets = [...durations]
    .map(([upToSeconds, count]) => ({ upToSeconds, count }))
    .sort((a, b) => a.upToSeconds - b.upToSeconds);
  const seconds = estimateQuantile(buckets, share);
  if (seconds === undefined) return undefined;
  return 1000 * (seconds === Number.POSITIVE_INFINITY ? (buckets.at(-2)?.upToSeconds ?? 0) : seconds);
}

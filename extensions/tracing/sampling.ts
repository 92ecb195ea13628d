/**
 * Decides which calls are traced.
 *
 * A caller names its trace, and says whether it records it. The standard samplers believe both: a caller who always
 * says "recorded", or chooses a trace ID below the ratio, has every call traced. Here the ratio is a matter of chance,
 * and the word of callers counts for a limited number of calls a second.
 */

/** How calls are chosen. */
export interface Sampling {
  /** The share of calls to trace, from 0 to 1. */
  readonly ratio: number;
  /** Whether a caller's own decision counts. Otherwise only the ratio does. */
  readonly followsCallers: boolean;
  /** The most calls a second to trace only because their callers do. */
  readonly maxFollowedPerSecond: number;
}

/** Chooses calls. */
export interface Sampler {
  /** @param parent whether the caller records the trace; undefined without a caller's trace */
  isChosen(parent: boolean | undefined): boolean;
  /** Calls whose callers record them, and that were over the limit. */
  readonly limited: number;
}

/** @param chance a number from 0 to below 1 @param nowMs a clock that never goes back */
export function createSampler(
  { ratio, followsCallers, maxFollowedPerSecond }: Sampling,
  chance: () => number = Math.random,
  nowMs: () => number = () => performance.now(),
): Sampler {
  let room = maxFollowedPerSecond;
  let filledMs = nowMs();
  let limited = 0;
  const mayFollow = (): boolean => {
    const now = nowMs();
    room = Math.min(maxFollowedPerSecond, room + ((now - filledMs) / 1000) * maxFollowedPerSecond);
    filledMs = now;
    if (room < 1) {
      limited += 1;
      return false;
    }
    room -= 1;
    return true;
  };
  return {
    isChosen(parent) {
      if (followsCallers && parent === false) return false;
      if (ratio > 0 && chance() < ratio) return true;
      return followsCallers && parent === true && mayFollow();
    },
    get limited() {
      return limited;
    },
  };
}

/**
 * Decides which calls are traced.
 *
 * A caller sends its trace ID and whether it records the trace. The standard samplers believe both: a caller
 * that always says "recorded", or picks a trace ID below the ratio, has every call traced. Here the ratio is
 * random, and the caller's decision is honoured only up to a rate limit.
 */

export interface Sampling {
  /** Share of calls to trace, 0 to 1. */
  readonly ratio: number;
  /** Whether the caller's decision counts, besides the ratio. */
  readonly followsCallers: boolean;
  /** Maximum calls per second that are traced only because the caller records them. */
  readonly maxFollowedPerSecond: number;
}

export interface Sampler {
  /** @param parent whether the caller records the trace; undefined without a caller's trace */
  isChosen(parent: boolean | undefined): boolean;
  /** Calls over the limit whose callers record the trace. */
  readonly limited: number;
}

/**
 * @param chance returns a random number, 0 inclusive to 1 exclusive
 * @param nowMs a monotonic clock
 */
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

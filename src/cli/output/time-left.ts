/** Estimates the remaining time of work, for progress bars. */

/** Minimum elapsed milliseconds for an estimate; less predicts too little. */
const leastMs = 1000;

/**
 * Describes the remaining time, assuming a constant speed.
 *
 * @param share the part of the work that is done, 0 to 1
 * @returns ", 45 s left", or "" while it is too early to estimate and at the end
 */
export function describeTimeLeft(share: number, elapsedMs: number): string {
  if (!(share > 0 && share < 1) || elapsedMs < leastMs) return "";
  return `, ${formatSeconds(Math.ceil((elapsedMs * (1 - share)) / share / 1000))} left`;
}

/** Formats a duration: "45 s", "2 min 5 s", "3 h 20 min". */
function formatSeconds(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60).toLocaleString("en")} h ${minutes % 60} min`;
}

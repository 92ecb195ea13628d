/** The estimate of how long work still takes, for progress bars. */

/** Work shorter than this says too little about the rest. */
const leastMs = 1000;

/**
 * Describes the time that is left, if the rest goes on at the same speed.
 *
 * @param share of the work that is done, 0 to 1
 * @returns ", 45 s left", or "" while it is too early to tell and at the end
 */
export function describeTimeLeft(share: number, elapsedMs: number): string {
  if (!(share > 0 && share < 1) || elapsedMs < leastMs) return "";
  return `, ${formatSeconds(Math.ceil((elapsedMs * (1 - share)) / share / 1000))} left`;
}

/** "45 s", "2 min 5 s", "3 h 20 min". */
function formatSeconds(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60).toLocaleString("en")} h ${minutes % 60} min`;
}

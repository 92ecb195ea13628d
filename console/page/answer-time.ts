/** How long the server took for a call, as the browser saw it on the wire. */

/** How long a browser may take to tell of a request that has ended. */
const maxWaitMs = 50;

/**
 * Reads the time from the request to the first byte of the answer (W3C Resource Timing, requestStart and
 * responseStart). The time before, in a queue behind other loads of the page, is not in it.
 *
 * @param rpc "pqc.PqcService/SignData"
 * @param since the call was made after this, in milliseconds of the page's clock
 * @returns milliseconds; undefined if the browser does not tell
 */
export async function readAnswerTime(rpc: string, since: number): Promise<number | undefined> {
  // The browser may tell a moment after the page has the answer.
  const startedAt = performance.now();
  for (;;) {
    const ms = findAnswerTime(performance.getEntriesByType("resource"), rpc, since);
    if (ms !== undefined || performance.now() - startedAt > maxWaitMs) return ms;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Finds the first call of an RPC since a time. */
export function findAnswerTime(
  entries: readonly Pick<PerformanceEntry, "name" | "startTime">[],
  rpc: string,
  since: number,
): number | undefined {
  const found = entries.find(({ name, startTime }) => name.endsWith(`/${rpc}`) && startTime >= since);
  if (found === undefined || !("requestStart" in found && "responseStart" in found)) return undefined;
  const { requestStart, responseStart } = found;
  // 0 stands for a time that the browser keeps to itself.
  if (typeof requestStart !== "number" || typeof responseStart !== "number" || requestStart === 0)
    return undefined;
  return responseStart - requestStart;
}

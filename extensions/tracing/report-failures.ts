/** Logs that spans cannot be exported, at most once a minute. */
import type { Logger } from "pino";

const intervalMs = 60_000;
/** Maximum characters quoted from a collector's error. */
const maxCharacters = 200;

/**
 * @param lost returns the number of spans lost so far
 * @param nowMs a monotonic clock
 */
export function createFailureReport(
  logger: Pick<Logger, "warn">,
  lost: () => number,
  nowMs: () => number = () => performance.now(),
): (error: unknown) => void {
  let lastMs = Number.NEGATIVE_INFINITY;
  return (error) => {
    const now = nowMs();
    if (now - lastMs < intervalMs) return;
    lastMs = now;
    logger.warn({ reason: describe(error), lostSpans: lost() }, "traces cannot be exported");
  };
}

/** Only the message: other members of an error may contain headers with secrets. */
function describe(error: unknown): string {
  // The SDK's core passes on errors either as JSON or as Error objects.
  const message = error instanceof Error ? `${error.name}: ${error.message}` : "the exporter failed";
  return message.length > maxCharacters ? `${message.slice(0, maxCharacters)}…` : message;
}

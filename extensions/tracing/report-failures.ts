/** Logs that spans cannot be exported: one line a minute at most, however many attempts fail. */
import type { Logger } from "pino";

const intervalMs = 60_000;
/** A collector's own words are not trusted to be short. */
const maxCharacters = 200;

/** @param lost counts the spans that were lost so far @param nowMs a clock that never goes back */
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

/** The message alone: other members of an error may hold headers, which may hold a secret. */
function describe(error: unknown): string {
  // The core of the SDK passes errors on as JSON or as errors.
  const message = error instanceof Error ? `${error.name}: ${error.message}` : "the exporter failed";
  return message.length > maxCharacters ? `${message.slice(0, maxCharacters)}…` : message;
}

/** The last line of defence: handles errors that no code caught. */
import type { Logger } from "pino";
import { isConnectionError } from "./server/connection-errors.ts";

export interface UncaughtErrorDeps {
  readonly logger: Pick<Logger, "error" | "fatal">;
  /** Counts an uncaught error. */
  readonly count: () => void;
  /**
   * Ends the program, whose state is unknown. Runs for the first error that does not belong to a connection.
   */
  readonly end: () => void;
}

/**
 * Handles uncaught errors and unhandled rejections; Node reports both here. The server survives a connection
 * error: it belongs to one peer, and must not end everyone else's calls.
 *
 * @returns a function that removes the handler
 */
export function handleUncaughtErrors({ logger, count, end }: UncaughtErrorDeps): () => void {
  let isEnding = false;
  const handle = (error: unknown, origin: NodeJS.UncaughtExceptionOrigin): void => {
    count();
    const line = { err: error, origin };
    if (isConnectionError(error)) {
      logger.error(line, "a connection error was not caught, which is a bug; the server keeps running");
      return;
    }
    logger.fatal(line, "an error was not caught, which is a bug; the server stops");
    if (isEnding) return;
    isEnding = true;
    end();
  };
  process.on("uncaughtException", handle);
  return () => void process.off("uncaughtException", handle);
}

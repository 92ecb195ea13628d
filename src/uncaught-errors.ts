/** The last line of defence: what the program does with an error that no code caught. */
import type { Logger } from "pino";
import { isConnectionError } from "./server/connection-errors.ts";

/** What the program does. */
export interface UncaughtErrorDeps {
  readonly logger: Pick<Logger, "error" | "fatal">;
  /** Counts an uncaught error. */
  readonly count: () => void;
  /** Ends the program, which may be in any state. Runs for the first error that is not of a connection. */
  readonly end: () => void;
}

/**
 * Handles uncaught errors, and rejections that nothing handles. Node passes both on here. The server survives an error of
 * a connection: it belongs to one peer, and must not end the calls of all others.
 *
 * @returns a function that stops it
 */
export function handleUncaughtErrors({ logger, count, end }: UncaughtErrorDeps): () => void {
  let isEnding = false;
  const handle = (error: unknown, origin: NodeJS.UncaughtExceptionOrigin): void => {
    count();
    const line = { err: error, origin };
    if (isConnectionError(error)) {
      logger.error(line, "an error of a connection was not caught, which is a bug; the server goes on");
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

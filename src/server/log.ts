/** The log of a program that serves: lines of JSON on standard error. */
import { type Logger, type LoggerOptions, pino } from "pino";

/** Bytes of lines that wait while they cannot be written; later lines are lost. */
const maxWaitingBytes = 1024 * 1024;

/** Opens the log. A program goes on when its lines cannot be written, for example on a full disk. */
export function openLog(options: LoggerOptions): Logger {
  const destination = pino.destination({ dest: 2, sync: true, maxLength: maxWaitingBytes });
  // The next line tries again, with those that wait. Without a listener, the error would end the program.
  destination.on("error", () => {});
  return pino(options, destination);
}

/** The server log: JSON lines on standard error. */
import { type Logger, type LoggerOptions, pino } from "pino";

/** Maximum bytes buffered while the log cannot be written; further lines are lost. */
const maxWaitingBytes = 1024 * 1024;

/** Opens the log. The program keeps running when log lines cannot be written, for example on a full disk. */
export function openLog(options: LoggerOptions): Logger {
  const destination = pino.destination({ dest: 2, sync: true, maxLength: maxWaitingBytes });
  // The next line retries, along with the buffered ones. Without a listener, the error would end the program.
  destination.on("error", () => {});
  return pino(options, destination);
}

/** Shows the progress of long work on standard error. */

/** Milliseconds between two updates, on a terminal and in a log. */
const everyMs = 200;
const everyLineMs = 5000;

/** Reports progress. */
export interface Progress {
  show(done: number, total: number): void;
  /** Ends the line, so that later output starts on a new one. */
  end(): void;
}

/** @param what such as "entries verified" */
export function createProgress(what: string): Progress {
  const { stderr } = process;
  const pauseMs = stderr.isTTY ? everyMs : everyLineMs;
  let shownAtMs = Number.NEGATIVE_INFINITY;
  let last = "";
  const write = (line: string): void => {
    stderr.write(stderr.isTTY ? `\r\x1b[K${line}` : `${line}\n`);
    last = line;
  };
  return {
    show(done, total) {
      const nowMs = performance.now();
      if (nowMs - shownAtMs < pauseMs && done < total) return;
      shownAtMs = nowMs;
      const line = `${done.toLocaleString("en")} of ${total.toLocaleString("en")} ${what}`;
      if (line !== last) write(line);
    },
    end: () => void (stderr.isTTY && last !== "" && stderr.write("\n")),
  };
}

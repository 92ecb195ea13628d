/** Shows the progress of long work on standard error. */
import { describeTimeLeft } from "./time-left.ts";

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
  const startMs = performance.now();
  let last = "";
  const write = (count: string, left: string): void => {
    stderr.write(stderr.isTTY ? `\r\x1b[K${count}${left}` : `${count}${left}\n`);
    last = count;
  };
  return {
    show(done, total) {
      const nowMs = performance.now();
      if (nowMs - shownAtMs < pauseMs && done < total) return;
      shownAtMs = nowMs;
      const count = `${done.toLocaleString("en")} of ${total.toLocaleString("en")} ${what}`;
      if (count !== last) write(count, describeTimeLeft(done / total, nowMs - startMs));
    },
    end: () => void (stderr.isTTY && last !== "" && stderr.write("\n")),
  };
}

/** Does work that reports its progress, and ends the line after it. @param what such as "entries verified" */
export async function withCount<T>(
  what: string,
  work: (onProgress: Progress["show"]) => Promise<T>,
): Promise<T> {
  const progress = createProgress(what);
  try {
    return await work(progress.show);
  } finally {
    progress.end();
  }
}

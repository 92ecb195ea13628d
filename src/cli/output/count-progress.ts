/** Shows the progress of long work on standard error: one updated line on a terminal, periodic lines elsewhere. */
import { describeTimeLeft } from "./time-left.ts";

/** Milliseconds between updates, on a terminal and in a log. */
const everyMs = 200;
const everyLineMs = 5000;

/** Receives progress: items done and items in total. */
export type OnCount = (done: number, total: number) => void;

/**
 * Runs work that reports its progress.
 *
 * @param what such as "entries verified"
 */
export async function withCount<T>(what: string, work: (onProgress: OnCount) => Promise<T>): Promise<T> {
  const { stderr } = process;
  const pauseMs = stderr.isTTY ? everyMs : everyLineMs;
  const startMs = performance.now();
  let shownAtMs = Number.NEGATIVE_INFINITY;
  let last = "";
  const show: OnCount = (done, total) => {
    const nowMs = performance.now();
    if (nowMs - shownAtMs < pauseMs && done < total) return;
    shownAtMs = nowMs;
    const count = `${done.toLocaleString("en")} of ${total.toLocaleString("en")} ${what}`;
    if (count === last) return;
    last = count;
    const line = `${count}${describeTimeLeft(done / total, nowMs - startMs)}`;
    stderr.write(stderr.isTTY ? `\r\x1b[K${line}` : `${line}\n`);
  };
  try {
    return await work(show);
  } finally {
    // Later output starts on its own line.
    if (stderr.isTTY && last !== "") stderr.write("\n");
  }
}

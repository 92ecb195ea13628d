/** The progress of long work on standard error, with the time left. */
import { readChunks, readSize } from "../files/read.ts";

/** Work shorter than this shows no progress bar, and no time left: it would predict too little. */
const silentMs = 1000;
/** Milliseconds between updates of a bar. */
const everyBarMs = 100;
const barCells = 30;

/** Reports the progress of a transfer. */
interface Progress {
  /** @param doneBytes the total so far */
  show(doneBytes: number): void;
  /** Removes the progress bar. */
  end(): void;
}

/** The terminal that shows the progress bar. */
interface ProgressTerminal {
  readonly isTTY?: boolean | undefined;
  write(text: string): unknown;
}

/** @param totalBytes undefined for a stream of unknown length */
export function createProgress(
  what: string,
  totalBytes: number | undefined,
  terminal: ProgressTerminal = process.stderr,
  nowMs: () => number = () => performance.now(),
): Progress {
  const startMs = nowMs();
  let shownAtMs = Number.NEGATIVE_INFINITY;
  return {
    show(doneBytes) {
      const atMs = nowMs();
      if (!terminal.isTTY || atMs - startMs < silentMs || atMs - shownAtMs < everyBarMs) return;
      shownAtMs = atMs;
      const bytesPerSecond = doneBytes / ((atMs - startMs) / 1000);
      const speed = `${mebibytes(doneBytes)} MiB, ${mebibytes(bytesPerSecond)} MiB/s`;
      const left = totalBytes ? describeTimeLeft(doneBytes / totalBytes, atMs - startMs) : "";
      terminal.write(`\r\x1b[K${what} ${drawBar(doneBytes, totalBytes)}${speed}${left}`);
    },
    end() {
      if (shownAtMs > 0) terminal.write("\r\x1b[K");
    },
  };
}

function drawBar(doneBytes: number, totalBytes: number | undefined): string {
  if (totalBytes === undefined || totalBytes === 0) return "";
  const share = Math.min(1, doneBytes / totalBytes);
  const full = Math.round(share * barCells);
  return `[${"#".repeat(full)}${"-".repeat(barCells - full)}] ${Math.floor(share * 100)} %, `;
}

function mebibytes(count: number): string {
  return (count / 1024 / 1024).toLocaleString("en", { maximumFractionDigits: 0 });
}

/** Reads a file in chunks with a progress bar; "-" is standard input. The arguments are as for `readChunks`. */
export function readWithProgress(path: string, reused?: Uint8Array): AsyncGenerator<Uint8Array> {
  return withProgress(readChunks(path, reused), createProgress(path, readSize(path)));
}

/** Passes chunks through and shows how many bytes have passed. */
export async function* withProgress(
  chunks: AsyncIterable<Uint8Array>,
  progress: Progress,
): AsyncGenerator<Uint8Array> {
  let doneBytes = 0;
  try {
    for await (const chunk of chunks) {
      yield chunk;
      doneBytes += chunk.length;
      progress.show(doneBytes);
    }
  } finally {
    progress.end();
  }
}

/** Milliseconds between updates of a count, on a terminal and in a log. */
const everyCountMs = 200;
const everyLineMs = 5000;

/** Receives progress: items done and items in total. */
export type OnCount = (done: number, total: number) => void;

/**
 * Runs work that reports its progress: one updated line on a terminal, periodic lines elsewhere.
 *
 * @param what such as "entries verified"
 */
export async function withCount<T>(what: string, work: (onProgress: OnCount) => Promise<T>): Promise<T> {
  const { stderr } = process;
  const pauseMs = stderr.isTTY ? everyCountMs : everyLineMs;
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

/**
 * Describes the remaining time, assuming a constant speed.
 *
 * @param share the part of the work that is done, 0 to 1
 * @returns ", 45 s left", or "" while it is too early to estimate and at the end
 */
export function describeTimeLeft(share: number, elapsedMs: number): string {
  if (!(share > 0 && share < 1) || elapsedMs < silentMs) return "";
  return `, ${formatSeconds(Math.ceil((elapsedMs * (1 - share)) / share / 1000))} left`;
}

/** Formats a duration: "45 s", "2 min 5 s", "3 h 20 min". */
function formatSeconds(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60).toLocaleString("en")} h ${minutes % 60} min`;
}

/** A progress bar on standard error, shown only on a terminal. */
import { readChunks, readSize } from "../files/read.ts";
import { describeTimeLeft } from "./time-left.ts";

/** Work shorter than this shows no progress bar. */
const silentMs = 1000;
/** Milliseconds between updates. */
const everyMs = 100;
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
      if (!terminal.isTTY || atMs - startMs < silentMs || atMs - shownAtMs < everyMs) return;
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

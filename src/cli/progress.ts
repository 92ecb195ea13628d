/** A bar on standard error where a person waits. */

/** Work shorter than this shows no bar. */
const silentMs = 1000;
/** Milliseconds between two states of the bar. */
const everyMs = 100;
const barCells = 30;

/** Says how far it is. */
export interface Progress {
  /** @param doneBytes so far, in all */
  show(doneBytes: number): void;
  /** Removes the bar. */
  end(): void;
}

/** Where the bar goes. */
export interface ProgressTerminal {
  readonly isTTY?: boolean | undefined;
  write(text: string): unknown;
}

/** @param totalBytes undefined for a stream that ends when it ends */
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
      terminal.write(`\r\x1b[K${what} ${drawBar(doneBytes, totalBytes)}${speed}`);
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

/** Passes chunks on and shows how many there were. */
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

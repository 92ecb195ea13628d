/** A terminal screen that is drawn in place and restored at the end (ECMA-48 and the xterm modes). */
import type { ReadStream, WriteStream } from "node:tty";
import { createPaint } from "../../src/cli/output/colors.ts";
import type { Line, Size } from "./draw.ts";

/** Switches to the alternate screen without a cursor, and back. */
const enter = "\x1b[?1049h\x1b[?25l";
const leave = "\x1b[?25h\x1b[?1049l";

/** Keys that end the view; the promise resolves with the key. */
export type EndKey = "q" | "Ctrl-C";

export interface Screen {
  readonly size: Size;
  /** Draws all lines and clears the rest of the screen. */
  draw(lines: readonly Line[]): void;
  onResize(listener: () => void): void;
  /** Resolves when an end key is pressed. */
  readonly ended: Promise<EndKey>;
  /** Restores the terminal. */
  close(): void;
}

/** Takes over the terminal until `close` is called or the process ends. */
export function openScreen(stdout: WriteStream, stdin: ReadStream): Screen {
  const paint = createPaint(stdout);
  let isOpen = true;
  const close = (): void => {
    if (!isOpen) return;
    isOpen = false;
    process.off("exit", close);
    if (stdin.isTTY) stdin.setRawMode(false);
    stdin.pause();
    stdout.write(leave);
  };
  process.on("exit", close);
  // Without a handler, these signals would end the process without restoring the terminal.
  for (const [signal, number] of [
    ["SIGTERM", 15],
    ["SIGHUP", 1],
  ] as const)
    process.once(signal, () => process.exit(128 + number));
  stdout.write(enter);
  return {
    get size() {
      // A terminal of unknown size reports 0.
      return { columns: stdout.columns || 80, rows: stdout.rows || 24 };
    },
    draw(lines) {
      if (!isOpen) return;
      const drawn = lines.map(({ text, style }) => (style === undefined ? text : paint(style, text)));
      stdout.write(`\x1b[H${drawn.map((line) => `${line}\x1b[K`).join("\r\n")}\x1b[J`);
    },
    onResize: (listener) => void stdout.on("resize", listener),
    ended: new Promise((resolve) => {
      if (stdin.isTTY) stdin.setRawMode(true);
      stdin.on("data", (keys: Buffer) => {
        // In raw mode, Ctrl-C raises no signal.
        if (keys.includes(0x03)) resolve("Ctrl-C");
        else if (keys.includes("q") || keys.includes("Q")) resolve("q");
      });
    }),
    close,
  };
}

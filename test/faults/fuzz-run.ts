/**
 * Runs sequences of bytes and actions, each on its own connection, many at a time. The seed and the number of a sequence
 * determine it, so that it can be repeated. The runner knows only a port, not the server behind it.
 */
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import tls from "node:tls";
import { createRandom, type Random } from "./mutations.ts";

/** One action of a client. There are no pauses: a client waits for its event loop, or for the server. */
export type Step =
  | { readonly do: "send"; readonly bytes: Buffer }
  /** Lets the event loop turn once, so that the bytes before and after are in separate segments. */
  | { readonly do: "turn" }
  /** Waits until the server sends something, or has answered a request on another connection. */
  | { readonly do: "wait" }
  | { readonly do: "stop reading" }
  | { readonly do: "read on" }
  /** Closes the client's half. */
  | { readonly do: "end" }
  | { readonly do: "close" }
  /** Ends the connection with RST. */
  | { readonly do: "reset" };

/** The target of the sequences. */
export interface FuzzedPort {
  readonly port: number;
  /** ALPN protocols that the client offers; undefined for a plaintext port. */
  readonly alpn?: readonly string[];
  /** Undefined while the server runs; otherwise how it ended. */
  readonly findEnd: () => string | undefined;
  /** Receives what the server sends. */
  readonly onBytes?: (bytes: Buffer) => void;
}

/** The sequences to run. */
export interface SequenceRange {
  readonly seed: number;
  readonly first: number;
  readonly count: number;
}

/** Number of sequences that a failure records. */
const recorded = 200;
/** Concurrent connections. */
const concurrency = 50;

/**
 * Reads the sequences to run from the environment: QSP_TEST_SEQUENCES is their number, QSP_TEST_SEED their seed, and
 * QSP_TEST_ONLY one number or a range, such as 1200-1250.
 */
export function readRange(defaults: { readonly seed: number; readonly count: number }): SequenceRange {
  const { QSP_TEST_SEED, QSP_TEST_SEQUENCES, QSP_TEST_ONLY } = process.env;
  const seed = Number(QSP_TEST_SEED ?? defaults.seed);
  if (QSP_TEST_ONLY === undefined)
    return { seed, first: 0, count: Number(QSP_TEST_SEQUENCES ?? defaults.count) };
  const [first = 0, last = first] = QSP_TEST_ONLY.split("-").map(Number);
  return { seed, first, count: last - first + 1 };
}

/**
 * Runs sequences.
 *
 * @throws Error that says how to repeat the last sequences, if the server ends
 */
export async function runSequences(
  target: FuzzedPort,
  range: SequenceRange,
  make: (random: Random) => readonly Step[],
): Promise<void> {
  const { seed, first, count } = range;
  const stepsOf = (index: number): readonly Step[] =>
    make(createRandom(seed ^ Math.imul(index + 1, 0x9e3779b1)));
  const beat = new Beat(target);
  let next = first;
  const work = async (): Promise<void> => {
    while (next < first + count && target.findEnd() === undefined) {
      const steps = stepsOf(next);
      next += 1;
      await runSteps(target, steps, beat);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  beat.close();
  const end = target.findEnd();
  if (end === undefined) return;
  const from = Math.max(first, next - recorded);
  const file = join(mkdtempSync(join(os.tmpdir(), "qsp-fuzz-")), "sequences.jsonl");
  const lines = Array.from({ length: next - from }, (_, i) => describe(from + i, stepsOf(from + i)));
  writeFileSync(file, lines.join(""));
  const repeat = `QSP_TEST_SEED=${seed} QSP_TEST_ONLY=${from}-${next - 1}`;
  throw new Error(
    `the server ended after ${next - first} sequences. The last ones are in ${file}; ${repeat} runs them again.\n${end}`,
  );
}

function describe(index: number, steps: readonly Step[]): string {
  const shown = steps.map((step) => (step.do === "send" ? { send: step.bytes.toString("latin1") } : step.do));
  return `${JSON.stringify({ index, steps: shown })}\n`;
}

async function runSteps(target: FuzzedPort, steps: readonly Step[], beat: Beat): Promise<void> {
  const socket = connect(target);
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  if (target.onBytes) socket.on("data", target.onBytes);
  socket.resume();
  await Promise.race([once(socket, target.alpn ? "secureConnect" : "connect").catch(() => {}), closed]);
  for (const step of steps) {
    if (socket.destroyed) break;
    await runStep(socket, step, beat);
  }
  if (!socket.destroyed && steps.at(-1)?.do === "end") await beat.wait(closed);
  socket.destroy();
  await closed;
}

function connect({ port, alpn }: Pick<FuzzedPort, "port" | "alpn">): net.Socket {
  const place = { port, host: "127.0.0.1", noDelay: true };
  const socket = alpn
    ? tls.connect({ ...place, rejectUnauthorized: false, ALPNProtocols: [...alpn] })
    : net.connect({ ...place, allowHalfOpen: true });
  socket.on("error", () => {}); // The server may reset the connection.
  return socket;
}

async function runStep(socket: net.Socket, step: Step, beat: Beat): Promise<void> {
  switch (step.do) {
    case "send":
      if (socket.writable) socket.write(step.bytes);
      return;
    case "turn":
      await setImmediate();
      return;
    case "wait":
      return beat.wait(waitForBytes(socket));
    case "stop reading":
      socket.pause();
      return;
    case "read on":
      socket.resume();
      return;
    case "end":
      socket.end();
      return;
    case "close":
      socket.destroy();
      return;
    case "reset":
      if (socket instanceof tls.TLSSocket) socket.destroy();
      else socket.resetAndDestroy();
  }
}

function waitForBytes(socket: net.Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      socket.off("data", done);
      socket.off("close", done);
      resolve();
    };
    socket.on("data", done);
    socket.on("close", done);
  });
}

/** A well-behaved connection. Once the server answers it, the server has read what other connections sent before. */
class Beat {
  readonly #target: FuzzedPort;
  #socket: net.Socket | undefined;
  #running: Promise<void> | undefined;
  #following: Promise<void> | undefined;
  #isClosed = false;

  constructor(target: FuzzedPort) {
    this.#target = target;
  }

  /** Waits for a promise, or for the answer to a request sent from now on. */
  wait(first: Promise<unknown>): Promise<void> {
    // A request already in flight may be answered before the server reads what the caller has sent.
    this.#following ??= (this.#running ?? Promise.resolve()).then(() => {
      this.#running = this.#following;
      this.#following = undefined;
      return this.#ask();
    });
    return Promise.race([first, this.#following]).then(() => {});
  }

  close(): void {
    this.#isClosed = true;
    this.#socket?.destroy();
  }

  async #ask(): Promise<void> {
    if (this.#isClosed) return;
    if (this.#socket === undefined || this.#socket.destroyed) {
      this.#socket = connect({ port: this.#target.port, ...(this.#target.alpn && { alpn: ["http/1.1"] }) });
    }
    const socket = this.#socket;
    socket.write("GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n");
    return new Promise((resolve) => {
      let text = "";
      const done = (): void => {
        socket.off("data", read);
        socket.off("close", done);
        resolve();
      };
      const read = (chunk: Buffer): void => {
        text += chunk.toString("latin1");
        if (text.endsWith("alive\n")) done();
      };
      socket.on("data", read);
      socket.on("close", done);
    });
  }
}

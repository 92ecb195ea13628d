/** Starts what is measured, loads it, and compares. */
import { type ChildProcess, execFile, fork } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { FloodInput, FloodResult } from "./flood.ts";
import type { LoadInput, LoadResult } from "./load.ts";
import type { RawWork } from "./raw-provider.ts";
import type { StreamInput } from "./stream-load.ts";

/** Milliseconds of one measurement. */
export const measureMs = Number(process.argv[2] ?? 4) * 1000;
/** Calls that wait for their answer at any time. */
export const inFlight = 64;
const rounds = 3;
const here = import.meta.dirname;
const run = promisify(execFile);

/** A server in a process of its own. */
export interface Child {
  readonly url: string;
  ask(message: string): Promise<{ p99Ms: number; rssBytes: number }>;
  tell(message: string): void;
}

export async function start(script: string, ...args: string[]): Promise<Child> {
  // As npm start does: one-time keys die young, and V8 does not see how much native memory each one holds.
  const execArgv = ["--max-semi-space-size=64"];
  const child: ChildProcess = fork(join(here, script), args, { stdio: "inherit", execArgv });
  const next = <T>(): Promise<T> =>
    new Promise((resolve, reject) => {
      child.once("message", (message) => resolve(message as T));
      child.once("exit", (code) => reject(new Error(`${script} ended with ${code}`)));
    });
  const { port } = await next<{ port: number }>();
  return {
    url: `http://127.0.0.1:${port}`,
    ask: (message) => {
      child.send(message);
      return next();
    },
    tell: (message) => void child.send(message),
  };
}

export async function load(url: string, order: Partial<LoadInput>): Promise<LoadResult> {
  const whole = { url, method: "POST", headers: {}, body: "", inFlight, warmUpMs: 1000, measureMs, ...order };
  const { stdout } = await run(process.execPath, [join(here, "load.ts"), JSON.stringify(whole)]);
  return JSON.parse(stdout) as LoadResult;
}

/** Makes unary calls of gRPC at a rate, with a deadline of 5 seconds each. */
export async function flood(
  url: string,
  call: Partial<LoadInput>,
  callsPerSecond: number,
): Promise<FloodResult> {
  const { path = "", body = "" } = call;
  const headers = { ...call.headers, "grpc-timeout": "5S" };
  const order: FloodInput = { url, path, headers, body, callsPerSecond, warmUpMs: 1000, measureMs };
  const { stdout } = await run(process.execPath, [join(here, "flood.ts"), JSON.stringify(order)]);
  return JSON.parse(stdout) as FloodResult;
}

/** Messages of a stream that wait for their answer at any time. */
const streamInFlight = 256;

/** Keeps a stream of calls going. @returns answers a second */
export async function loadStream(
  url: string,
  path: string,
  message: Uint8Array,
  streams: number,
): Promise<number> {
  const frame = frameOf(message).toString("base64");
  const order: StreamInput = {
    url,
    path,
    frame,
    streams,
    inFlight: streamInFlight,
    warmUpMs: 1000,
    measureMs,
  };
  const { stdout } = await run(process.execPath, [join(here, "stream-load.ts"), JSON.stringify(order)]);
  return (JSON.parse(stdout) as { answersPerSecond: number }).answersPerSecond;
}

/** A message with the prefix that gRPC gives it. */
export function frameOf(message: Uint8Array): Buffer {
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);
  return frame;
}

export function grpc(path: string, message: Uint8Array): Partial<LoadInput> {
  return {
    path,
    headers: { "content-type": "application/grpc", te: "trailers" },
    body: frameOf(message).toString("base64"),
  };
}

export function json(path: string, text: string): Partial<LoadInput> {
  return {
    path,
    headers: { "content-type": "application/json" },
    body: Buffer.from(text).toString("base64"),
  };
}

/** Calls by REST with JSON, to set up what is measured. */
// biome-ignore lint/suspicious/noExplicitAny: the answers are those of the service that is measured
export async function post(app: Child, path: string, body: unknown): Promise<any> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(app.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
  return answer.json();
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

/** Measures two things in turn, and says what part of the second the first reaches. */
export async function compare(
  title: string,
  target: string,
  first: () => Promise<number>,
  second: () => Promise<number>,
): Promise<void> {
  const [a, b]: [number[], number[]] = [[], []];
  for (let round = 1; round <= rounds; round += 1) {
    process.stderr.write(`\r${title}: round ${round} of ${rounds} `);
    a.push(await first());
    b.push(await second());
  }
  process.stderr.write("\r\x1b[K");
  const ratio = median(a) / median(b);
  console.log(
    `${title}: ${ratio.toFixed(2)} (${target}); ${median(a).toFixed(0)} against ${median(b).toFixed(0)} a second`,
  );
}

/** What the provider alone does, in a process of its own: see raw-provider.ts. @returns calls a second */
export async function rawProvider(what: RawWork): Promise<number> {
  const args = [join(here, "raw-provider.ts"), what, String(inFlight), String(measureMs)];
  const { stdout } = await run(process.execPath, args);
  return (JSON.parse(stdout) as { callsPerSecond: number }).callsPerSecond;
}

export function toMiB(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(0);
}

/** Starts servers, loads them, and compares the results. */
import { type ChildProcess, execFile, fork } from "node:child_process";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import {
  create,
  type DescMessage,
  type DescMethod,
  type MessageInitShape,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { loadNative } from "../../src/crypto/native/load.ts";
import type { ProviderName } from "../../src/crypto/provider.ts";
import type { RawResult, RawWork } from "./raw-provider.ts";
import { showProgress } from "./results.ts";

/** Options of `npm run bench`. */
export const { values: options, positionals: chosenParts } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: "string", default: "4" },
    rounds: { type: "string", default: "3" },
    json: { type: "string" },
  },
});
/** Length of one measurement, in milliseconds. */
export const measureMs = Number(options.seconds) * 1000;
/** Calls in flight. */
export const inFlight = 64;
/** Number of rounds; each pair is measured in turn. */
export const rounds = Number(options.rounds);
/** The crypto providers of this machine, the fastest first. */
export const providers: readonly [ProviderName, ...ProviderName[]] =
  loadNative().kind === "loaded" ? ["native", "openssl"] : ["openssl"];
const here = import.meta.dirname;
const run = promisify(execFile);

/** A server in a separate process. */
export interface Child {
  readonly url: string;
  readonly pid: number;
  ask(message: string): Promise<{ p99Ms: number; rssBytes: number }>;
  send(message: string): void;
}

export async function start(script: string, ...args: string[]): Promise<Child> {
  // Like npm start: one-time keys die young, and V8 does not see how much native memory each one holds.
  const execArgv = ["--max-semi-space-size=64", "--no-allocation-site-pretenuring"];
  const child: ChildProcess = fork(join(here, script), args, { stdio: "inherit", execArgv });
  const next = <T>(): Promise<T> =>
    new Promise((resolve, reject) => {
      child.once("message", (message) => resolve(message as T));
      child.once("exit", (code) => reject(new Error(`${script} ended with ${code}`)));
    });
  const { port } = await next<{ port: number }>();
  return {
    url: `http://127.0.0.1:${port}`,
    pid: child.pid ?? 0,
    ask: (message) => {
      child.send(message);
      return next();
    },
    send: (message) => void child.send(message),
  };
}

/** A call, as load generators make it. */
export interface MadeCall {
  readonly path: string;
  /** POST by default. */
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  /** Request body in base64; for gRPC with its 5-byte prefix. */
  readonly body?: string;
}

/** A call of an RPC. */
type MethodCall = Required<Omit<MadeCall, "method">>;

type Method<I extends DescMessage> = DescMethod & { readonly input: I };

/** Calls an RPC over gRPC; the message has its 5-byte prefix. */
export function grpc<I extends DescMessage>(method: Method<I>, request: MessageInitShape<I>): MethodCall {
  const message = toBinary(method.input, create(method.input, request));
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);
  return {
    path: pathOf(method),
    headers: { "content-type": "application/grpc", te: "trailers" },
    body: frame.toString("base64"),
  };
}

/** Calls an RPC with JSON over Connect. */
export function json<I extends DescMessage>(method: Method<I>, request: MessageInitShape<I>): MethodCall {
  const text = toJsonString(method.input, create(method.input, request));
  const body = Buffer.from(text).toString("base64");
  return { path: pathOf(method), headers: { "content-type": "application/json" }, body };
}

function pathOf({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
}

/** Makes a REST call with JSON, to set up a measurement. */
// biome-ignore lint/suspicious/noExplicitAny: the measured service defines the answers
export async function post(app: Pick<Child, "url">, path: string, body: unknown): Promise<any> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(app.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
  return answer.json();
}

/**
 * Measures sides in turn, several times, because the speed of a machine drifts within minutes.
 *
 * @param sides by name
 * @returns the values of each side, one for each round
 */
export async function measureInTurn<T>(
  sides: readonly (readonly [name: string, measure: () => Promise<T>])[],
): Promise<T[][]> {
  const values: T[][] = sides.map(() => []);
  for (let round = 1; round <= rounds; round += 1) {
    for (const [i, [name, measure]] of sides.entries()) {
      showProgress(`${name}: round ${round} of ${rounds}`);
      values[i]?.push(await measure());
    }
  }
  showProgress();
  return values;
}

/** Measures a provider without a server, in a separate process. */
export async function measureRaw(what: RawWork, provider: ProviderName): Promise<RawResult> {
  const args = [join(here, "raw-provider.ts"), what, provider, String(inFlight), String(measureMs)];
  const { stdout } = await run(process.execPath, args);
  return JSON.parse(stdout);
}

export function toMiB(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(0);
}

/** Clients in other languages that make gRPC calls with bytes as messages: test/interop/clients. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll } from "vitest";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

/** What a client sends. */
export interface RawCall {
  /** "127.0.0.1:port" */
  readonly authority: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The message before its prefix; empty if left out. */
  readonly message?: Uint8Array;
  readonly clientStreaming?: boolean;
  readonly serverStreaming?: boolean;
  /** Whether to compress the message. */
  readonly gzip?: boolean;
}

/** How a call ended, as the client's library tells it. */
export interface RawOutcome {
  /** Messages received before the end. */
  readonly messages: number;
  readonly code: number;
  readonly message: string;
  readonly reason: string;
  readonly domain: string;
  readonly metadata: Readonly<Record<string, string>> | null;
  /** The fields of google.rpc.BadRequest. */
  readonly fields: readonly string[];
  /** The delay of google.rpc.RetryInfo, such as "1s"; empty without one. */
  readonly retryAfter: string;
}

/** A client, which keeps its connections from call to call. */
export interface RawClient {
  call(call: RawCall): Promise<RawOutcome>;
  end(): Promise<void>;
}

const clients = join(import.meta.dirname, "clients");

/** Starts the client of grpcio. */
export function startPythonClient(python: string): RawClient {
  return start(python, [join(clients, "python/refused.py")]);
}

/** Builds and starts the client of grpc-go for a suite. Go keeps what it compiled: only the first build takes long. */
export function startGoClient(): RawClient {
  const program = join(makeTemporaryDirectory(afterAll), "refused");
  const { status, stderr } = spawnSync("go", ["build", "-o", program, "./refused"], {
    cwd: join(clients, "go"),
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`go build failed: ${stderr}`);
  return start(program, []);
}

function start(program: string, args: readonly string[]): RawClient {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "ignore"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const closed = once(child, "close");
  return {
    async call({ message = new Uint8Array(), ...call }) {
      const line = {
        headers: {},
        clientStreaming: false,
        serverStreaming: false,
        gzip: false,
        ...call,
        message: Buffer.from(message).toString("base64"),
      };
      child.stdin.write(`${JSON.stringify(line)}\n`);
      const { done, value } = await lines.next();
      if (done === true) throw new Error(`${program} ended with ${child.exitCode} before it answered`);
      return JSON.parse(value);
    },
    async end() {
      child.stdin.end();
      await closed;
    },
  };
}

/** Clients in other languages that make gRPC calls with bytes as messages: test/interop/clients. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll } from "vitest";
import { startLineClient } from "../support/line-client.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

/** The call to make. */
export interface RawCall {
  /** "127.0.0.1:port" */
  readonly authority: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The message without its prefix; empty if omitted. */
  readonly message?: Uint8Array;
  readonly clientStreaming?: boolean;
  readonly serverStreaming?: boolean;
  /** Whether to compress the message. */
  readonly gzip?: boolean;
}

/** How a call ended, as the client library reports it. */
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
  /** The delay of google.rpc.RetryInfo, such as "1s"; empty if absent. */
  readonly retryAfter: string;
}

/** A client, which keeps its connections between calls. */
export type RawClient = ReturnType<typeof start>;

const clients = join(import.meta.dirname, "clients");

/** Starts the grpcio client. */
export function startPythonClient(python: string): RawClient {
  return start(python, [join(clients, "python/refused.py")]);
}

/** Builds and starts the grpc-go client for a suite. Go caches the build, so only the first one is slow. */
export function startGoClient(): RawClient {
  const program = join(makeTemporaryDirectory(afterAll), "refused");
  const { status, stderr } = spawnSync("go", ["build", "-o", program, "./refused"], {
    cwd: join(clients, "go"),
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`go build failed: ${stderr}`);
  return start(program, []);
}

function start(program: string, args: readonly string[]) {
  const { ask, end } = startLineClient<object, RawOutcome>(program, args);
  const defaults = { headers: {}, clientStreaming: false, serverStreaming: false, gzip: false };
  return {
    call: ({ message = new Uint8Array(), ...call }: RawCall) =>
      ask({ ...defaults, ...call, message: Buffer.from(message).toString("base64") }),
    end,
  };
}

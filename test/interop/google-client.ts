/** Google's client for Python as a program that makes calls: test/interop/clients/python/google_kms.py. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** One call of google.cloud.kms.KeyManagementServiceClient. */
export interface GoogleCall {
  readonly transport: "grpc" | "rest";
  /** The name in Python: "get_crypto_key". */
  readonly method: string;
  /** The request as Python takes it, with the names of the proto. */
  readonly request: object;
  readonly token?: string;
}

/** An exception of google.api_core.exceptions, or of google.auth, which has only a class. */
export interface GoogleError {
  readonly class: string;
  /** Null if the HTTP status leaves several codes. */
  readonly code?: string | null;
  readonly httpStatus?: number;
  readonly reason?: string | null;
  readonly domain?: string | null;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly message?: string;
}

/** What came of a call: an answer in its JSON form, or all rows of a list; or an error. */
export interface GoogleOutcome {
  readonly answer?: unknown;
  readonly error?: GoogleError;
}

/** A client, which keeps its connections from call to call. It makes one call after the other. */
export interface GoogleClient {
  call(call: GoogleCall): Promise<GoogleOutcome>;
  end(): Promise<void>;
}

/** Starts the client. @param authority "127.0.0.1:port" */
export function startGoogleClient(python: string, authority: string): GoogleClient {
  const script = join(import.meta.dirname, "clients/python/google_kms.py");
  const child = spawn(python, [script, authority], { stdio: ["pipe", "pipe", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const closed = once(child, "close");
  return {
    async call(call) {
      child.stdin.write(`${JSON.stringify(call)}\n`);
      const { done, value } = await lines.next();
      if (done === true) throw new Error(`the client ended before it answered: ${stderr}`);
      return JSON.parse(value);
    },
    async end() {
      child.stdin.end();
      await closed;
    },
  };
}

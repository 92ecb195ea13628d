/** A Google Cloud KMS client, run as a program that makes calls, such as python/google_kms.py. */
import { startLineClient } from "../../../test/support/line-client.ts";

/** One call of KeyManagementServiceClient. */
export interface GoogleCall {
  readonly transport: "grpc" | "rest";
  /** The Python method name: "get_crypto_key". */
  readonly method: string;
  /** The request in JSON, with proto field names. */
  readonly request: object;
  readonly token?: string;
}

/** An error as the client library reports it. The library's own errors have only a class and a message. */
export interface GoogleError {
  readonly class: string;
  /** In the library's terms; null if an HTTP status maps to several codes. */
  readonly code?: string | number | null;
  readonly reason?: string | null;
  readonly domain?: string | null;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly message?: string;
}

/** A call's outcome: an answer in JSON, all rows of a list, or an error. */
export interface GoogleOutcome {
  readonly answer?: unknown;
  readonly error?: GoogleError;
}

/** A client that keeps its connections open and makes one call at a time. */
export interface GoogleClient {
  call(call: GoogleCall): Promise<GoogleOutcome>;
  end(): Promise<void>;
}

export function startGoogleClient(program: string, args: readonly string[]): GoogleClient {
  const { ask, end } = startLineClient<GoogleCall, GoogleOutcome>(program, args);
  return { call: ask, end };
}

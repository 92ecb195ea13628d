/** A client of Google for Cloud KMS as a program that makes calls, as python/google_kms.py does. */
import { startLineClient } from "../../../test/support/line-client.ts";

/** One call of a KeyManagementServiceClient. */
export interface GoogleCall {
  readonly transport: "grpc" | "rest";
  /** The name in Python: "get_crypto_key". */
  readonly method: string;
  /** The request in its JSON form, with the names of the proto. */
  readonly request: object;
  readonly token?: string;
}

/** An error as the client's library tells it. An error of the library itself has only a class and a message. */
export interface GoogleError {
  readonly class: string;
  /** In the words of the library; null if an HTTP status leaves several codes. */
  readonly code?: string | number | null;
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

/** Starts a client. */
export function startGoogleClient(program: string, args: readonly string[]): GoogleClient {
  const { ask, end } = startLineClient<GoogleCall, GoogleOutcome>(program, args);
  return { call: ask, end };
}

/** Google's unmodified Cloud KMS clients in three languages, run as programs such as python/google_kms.py. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll } from "vitest";
import { findPython } from "../../../test/interop/python.ts";
import { isMissing } from "../../../test/interop/tools.ts";
import { startLineClient } from "../../../test/support/line-client.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";

/** One call of KeyManagementServiceClient. */
interface GoogleCall {
  readonly transport: "grpc" | "rest";
  /** The Python method name: "get_crypto_key". */
  readonly method: string;
  /** The request in JSON, with proto field names. */
  readonly request: object;
  readonly token?: string;
}

/**
 * An error as the client library reports it, with class and message, and of the server's errors the code in the
 * library's terms, the reason, domain and metadata.
 */
type GoogleError = Readonly<Record<string, unknown>>;

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

function startGoogleClient(program: string, args: readonly string[]): GoogleClient {
  const { ask, end } = startLineClient<GoogleCall, GoogleOutcome>(program, args);
  return { call: ask, end };
}

/** How a library reports a missing and a wrong token. */
type TokenErrors = Readonly<Record<"withoutToken" | "withWrongToken", GoogleError>>;

const tokenErrors: TokenErrors = {
  withoutToken: { reason: "TOKEN_MISSING" },
  withWrongToken: { reason: "TOKEN_MALFORMED" },
};

/** A Google library and a program that calls it. */
export interface GoogleProgram {
  readonly name: string;
  /** Whether to skip its tests; the name then gives the reason. */
  readonly isMissing: boolean;
  readonly errors: Readonly<Record<"grpc" | "rest", TokenErrors>>;
  /**
   * Starts the program against a server.
   *
   * @param authority "127.0.0.1:port"
   */
  start(authority: string): GoogleClient;
}

const here = import.meta.dirname;

const python = findPython("google.cloud.kms");

function named(name: string, isMissing: boolean) {
  return { name: isMissing ? `${name} (not installed)` : name, isMissing };
}

export const pythonProgram: GoogleProgram = {
  ...named("google-cloud-kms for Python", python === undefined),
  errors: {
    grpc: tokenErrors,
    // google-auth handles 401 itself: it asks the credentials for a new token, and they have none.
    rest: { withoutToken: { class: "InvalidOperation" }, withWrongToken: { class: "RefreshError" } },
  },
  start: (authority) => startGoogleClient(python ?? "", [join(here, "python/google_kms.py"), authority]),
};

export const nodePrograms: readonly GoogleProgram[] = [
  nodeProgram("@google-cloud/kms 6 for Node", "@google-cloud/kms"),
  nodeProgram("@google-cloud/kms 5 for Node", "@google-cloud/kms-5"),
];

/** @param library the library's name in node/package.json */
function nodeProgram(name: string, library: string): GoogleProgram {
  const isInstalled = existsSync(join(here, "node/node_modules", library));
  return {
    ...named(name, !isInstalled && process.env.QSP_TEST_REQUIRE_ALL !== "1"),
    errors: { grpc: tokenErrors, rest: tokenErrors },
    start: (authority) =>
      startGoogleClient(process.execPath, [join(here, "node/google_kms.js"), authority, library]),
  };
}

/** The compiled Go program. */
const compiled = join(makeTemporaryDirectory(afterAll), "google");

export const goProgram: GoogleProgram = {
  ...named("cloud.google.com/go/kms for Go", isMissing("go")),
  errors: { grpc: tokenErrors, rest: tokenErrors },
  start(authority) {
    const args = ["build", "-o", compiled, "./google"];
    const env = { ...process.env, GOTOOLCHAIN: "go1.27.3" };
    const { status, stderr } = spawnSync("go", args, { cwd: join(here, "go"), env, encoding: "utf8" });
    if (status !== 0) throw new Error(`go build failed: ${stderr}`);
    return startGoogleClient(compiled, [authority]);
  },
};

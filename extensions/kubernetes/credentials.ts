/** The plugin's token source. The plugin outlives any single token. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { createDeadlineSignal } from "@connectrpc/connect/protocol";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import type { ApiClient, CallLimits } from "../../src/cli/connection/api-client.ts";
import { usageError } from "../../src/cli/exit-codes.ts";
import { readText } from "../../src/cli/files/read.ts";

/** Provides a token for each call. */
export interface TokenSource {
  /**
   * @returns undefined for a server that needs no token
   * @throws CliError; ConnectError if the log-in is refused
   */
  find(limits: CallLimits): Promise<string | undefined>;
  /**
   * Discards a token that the server refused.
   *
   * @returns whether a new one may be available
   */
  drop(token: string | undefined): boolean;
}

/** Reads the token again for each call, because its owner replaces it before it expires. */
export function createStoredTokens(read: () => string | undefined): TokenSource {
  return { find: async () => read(), drop: () => false };
}

export interface LoginDeps {
  readonly server: ApiClient;
  readonly username: string;
  /** The password is the first line. It is read again at each log-in. */
  readonly passwordFile: string;
  /** Current time in milliseconds. */
  readonly now: () => number;
}

interface Login {
  readonly token: string;
  readonly renewAtMs: number;
}

/** Minimum milliseconds between failed log-ins: the server throttles callers that guess passwords. */
const retryMs = 10_000;
/** Minimum milliseconds for which a token is used, whatever the clocks say. */
const minUseMs = 60_000;

/** Logs in when a token is needed and again before it expires. Concurrent calls share one log-in. */
export function createLoginTokens(deps: LoginDeps): TokenSource {
  const { now } = deps;
  let login: Login | undefined;
  let running: Promise<Login> | undefined;
  let failure: { readonly error: unknown; readonly untilMs: number } | undefined;
  const renew = async (): Promise<Login> => {
    try {
      login = await logIn(deps);
      return login;
    } catch (error) {
      failure = { error, untilMs: now() + retryMs };
      throw error;
    } finally {
      running = undefined;
    }
  };
  return {
    async find(limits) {
      if (login !== undefined && now() < login.renewAtMs) return login.token;
      if (failure !== undefined && now() < failure.untilMs) throw failure.error;
      failure = undefined;
      // A call that ends does not cancel the log-in, which may take longer than an API server waits.
      running ??= renew();
      return (await waitFor(running, limits)).token;
    },
    drop(token) {
      if (login !== undefined && login.token === token) login = undefined;
      return true;
    },
  };
}

/** Waits for work no longer than the call may take, without cancelling the work. */
async function waitFor<T>(work: Promise<T>, { timeoutMs }: CallLimits): Promise<T> {
  const { signal, cleanup } = createDeadlineSignal(timeoutMs);
  const end = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  try {
    return await Promise.race([work, end]);
  } finally {
    cleanup();
  }
}

/** Logs in within the time limit of `--timeout`. */
async function logIn({ server, username, passwordFile, now }: LoginDeps): Promise<Login> {
  const password = readPassword(passwordFile);
  const anonymous = server.withToken(undefined);
  const { token, expiresAt } = await anonymous.ask(PqcService.method.issueToken, { username, password });
  const lifetimeMs = expiresAt === undefined ? 0 : timestampDate(expiresAt).getTime() - now();
  return { token, renewAtMs: now() + Math.max(minUseMs, lifetimeMs * 0.75) };
}

/**
 * Reads a password file's first line.
 *
 * @throws CliError if it is empty
 */
export function readPassword(path: string): string {
  const [password = ""] = readText(path).split(/\r?\n/, 1);
  if (password === "") throw usageError(`${path} has an empty first line; put the password there`);
  return password;
}

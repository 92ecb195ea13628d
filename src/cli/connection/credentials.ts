/** Token sources of programs that outlive any single token, such as plugins and agents. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { createDeadlineSignal } from "@connectrpc/connect/protocol";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import type { ParsedOptions } from "../command-line/options.ts";
import { usageError } from "../exit-codes.ts";
import { readText } from "../files/read.ts";
import { type ApiClient, type CallLimits, readToken } from "./api-client.ts";

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

interface LoginDeps {
  readonly server: ApiClient;
  readonly username: string;
  /** The password is the first line. It is read again at each log-in. */
  readonly passwordFile: string;
  /** Current time in milliseconds. */
  readonly now: () => number;
}

/** A token from a log-in. */
interface Login {
  readonly token: string;
  readonly expiresAtMs: number;
}

/** Minimum milliseconds between failed log-ins: the server throttles callers that guess passwords. */
const retryMs = 10_000;
/** Minimum milliseconds for which a token is used, whatever the clocks say. */
const minUseMs = 60_000;

/** Logs in as a user, as `createRenewedTokens` describes, within the time limit of `--timeout`. */
export function createLoginTokens({ server, username, passwordFile, now }: LoginDeps): TokenSource {
  const anonymous = server.withToken(undefined);
  return createRenewedTokens(async () => {
    const password = readPassword(passwordFile);
    const { token, expiresAt } = await anonymous.ask(PqcService.method.issueToken, { username, password });
    return { token, expiresAtMs: expiresAt === undefined ? 0 : timestampDate(expiresAt).getTime() };
  }, now);
}

/**
 * Logs in when a token is needed and again before it expires. Concurrent calls share one log-in.
 *
 * @param now current time in milliseconds
 */
export function createRenewedTokens(logIn: () => Promise<Login>, now: () => number): TokenSource {
  let login: { readonly token: string; readonly renewAtMs: number } | undefined;
  let running: Promise<string> | undefined;
  let failure: { readonly error: unknown; readonly atMs: number } | undefined;
  const renew = async (): Promise<string> => {
    try {
      const { token, expiresAtMs } = await logIn();
      login = { token, renewAtMs: now() + Math.max(minUseMs, 0.75 * (expiresAtMs - now())) };
      return token;
    } catch (error) {
      failure = { error, atMs: now() };
      throw error;
    } finally {
      running = undefined;
    }
  };
  return {
    async find(limits) {
      if (login !== undefined && now() < login.renewAtMs) return login.token;
      const sinceFailureMs = now() - (failure?.atMs ?? 0);
      // Below 0, the clock was set back.
      if (failure !== undefined && sinceFailureMs >= 0 && sinceFailureMs < retryMs) throw failure.error;
      failure = undefined;
      // A call that ends does not cancel the log-in, which may take longer than an API server waits.
      running ??= renew();
      return waitFor(running, limits);
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

/**
 * Reads the token again for each call: from --token-file, QSP_TOKEN, or a stored log-in.
 *
 * @throws CliError if the file is missing
 */
export function openStoredTokens(options: ParsedOptions, server: ApiClient): TokenSource {
  const read = (): string | undefined => readToken(options, server.url);
  // Fails at startup if the file is missing.
  read();
  return createStoredTokens(read);
}

/**
 * Reads a name and a file from two options that go together, instead of a token.
 *
 * @throws CliError
 */
export function readNameAndFile(
  options: ParsedOptions,
  name: string,
  file: string,
): { readonly name: string; readonly file: string } | undefined {
  const [givenName, givenFile] = [options.text(name), options.text(file)];
  if (givenName === undefined && givenFile === undefined) return undefined;
  if (givenName === undefined || givenFile === undefined)
    throw usageError(`--${name} and --${file} go together; give both, or a token`);
  if (options.text("token-file") !== undefined)
    throw usageError(`--token-file and --${name} cannot be combined; give only one`);
  return { name: givenName, file: givenFile };
}

/** Creates clients with a current token. */
export interface AuthorizedServer {
  /** Calls a function with a client. If the server refuses its token, calls it once more with a new one. */
  call<T>(use: (server: ApiClient) => Promise<T>, limits?: CallLimits): Promise<T>;
}

export function createAuthorizedServer(server: ApiClient, tokens: TokenSource): AuthorizedServer {
  let client: { readonly token: string | undefined; readonly server: ApiClient } | undefined;
  const authorized = (token: string | undefined): ApiClient => {
    if (client === undefined || client.token !== token) client = { token, server: server.withToken(token) };
    return client.server;
  };
  return {
    async call(use, limits = {}) {
      const token = await tokens.find(limits);
      try {
        return await use(authorized(token));
      } catch (error) {
        const isRefused = error instanceof ConnectError && error.code === Code.Unauthenticated;
        if (!isRefused || !tokens.drop(token)) throw error;
        return await use(authorized(await tokens.find(limits)));
      }
    },
  };
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

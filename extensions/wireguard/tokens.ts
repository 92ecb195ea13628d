/** Tokens for the verbs, and for an agent, which outlives any single one. */
import { AuthorizationService } from "#gen/oauth/authorization_service_pb.ts";
import type { Options, ParsedOptions } from "../../src/cli/command-line/options.ts";
import type { ApiClient } from "../../src/cli/connection/api-client.ts";
import {
  createLoginTokens,
  createRenewedTokens,
  openStoredTokens,
  readNameAndFile,
  readPassword,
  type TokenSource,
} from "../../src/cli/connection/credentials.ts";
import { usageError } from "../../src/cli/exit-codes.ts";
import type { Verb } from "../../src/cli/verb.ts";

/** In the order of the help text. */
export const tokenOptions = {
  username: { value: "USERNAME", meaning: "User to log in as, instead of with qsp login" },
  "password-file": {
    value: "FILE",
    meaning: "File with the password of --username on its first line",
    file: "reads",
  },
  client: { value: "NAME", meaning: "OAuth 2 client to request tokens as, instead of a user" },
  "client-secret-file": {
    value: "FILE",
    meaning: "File with the secret of --client on its first line",
    file: "reads",
  },
} as const satisfies Options;

/**
 * Opens the source that the options name; without them, the token of --token-file, QSP_TOKEN or qsp login.
 *
 * @param scope what to request as a client; all of its scopes if empty
 * @throws CliError
 */
export function openAgentTokens(options: ParsedOptions, server: ApiClient, scope: string): TokenSource {
  const user = readNameAndFile(options, "username", "password-file");
  const client = readNameAndFile(options, "client", "client-secret-file");
  if (user !== undefined && client !== undefined)
    throw usageError("--username and --client cannot be combined; give only one");
  if (user === undefined && client === undefined) return openStoredTokens(options, server);
  const { name, file } = user ?? client ?? { name: "", file: "" };
  // Fails at startup if the file is missing.
  readPassword(file);
  const now = Date.now;
  if (user !== undefined) return createLoginTokens({ server, username: name, passwordFile: file, now });
  const anonymous = server.withToken(undefined);
  return createRenewedTokens(async () => {
    const answer = await anonymous.ask(AuthorizationService.method.issueToken, {
      grantType: "client_credentials",
      clientId: name,
      clientSecret: readPassword(file),
      scope,
    });
    return { token: answer.accessToken, expiresAtMs: now() + answer.expiresIn * 1000 };
  }, now);
}

/** Adds the credentials of an agent to a verb, which calls the server with one token. */
export function withCredentials(verb: Verb): Verb {
  return {
    ...verb,
    options: { ...verb.options, ...tokenOptions },
    async run(input) {
      const token = await openAgentTokens(input.options, input.server, "").find({});
      return verb.run({ ...input, server: input.server.withToken(token) });
    },
  };
}

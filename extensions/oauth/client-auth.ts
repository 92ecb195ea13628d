/** Reads how a client authenticates: by HTTP Basic, or in the request (RFC 6749, section 2.3.1). */
import type { ConnectError, HandlerContext } from "@connectrpc/connect";
import { readOrigin } from "../../src/calls/call-values.ts";
import { refuse } from "../../src/errors.ts";
import { isAccountName } from "../../src/identity/account-name.ts";
import type { Accounts } from "../../src/identity/authenticate.ts";
import type { CheckClient } from "../../src/identity/client-secrets.ts";
import type { StoredClient } from "../../src/identity/clients.ts";
import type { LogInRecords, TokenOperation } from "../../src/identity/log-in-records.ts";
import { reasons } from "./reasons.ts";

/** Characters of credentials in base64: a client_id and a client_secret of the longest form, percent-encoded. */
const maxBasicCharacters = 8192;

/** The fields of a request that can identify a client. */
export interface ClientFields {
  readonly clientId: string;
  readonly clientSecret: string;
}

/** The dependencies of the authentication of clients. */
export interface ClientAuthDeps {
  readonly checkClient: CheckClient;
  readonly accounts: Pick<Accounts, "clients">;
  readonly logInRecords: Pick<LogInRecords, "succeeded" | "failed">;
}

/**
 * Authenticates the client of a call.
 *
 * @param operation the request of the client, for the log of identities
 * @throws CLIENT_INVALID, FIELD_INVALID for two ways to authenticate, RECORD_DAMAGED
 */
export async function requireClient(
  { checkClient, logInRecords, accounts }: ClientAuthDeps,
  fields: ClientFields,
  context: Pick<HandlerContext, "requestHeader" | "values">,
  operation: TokenOperation,
): Promise<StoredClient> {
  const { name, secret } = readCredentials(fields, context.requestHeader.get("authorization"));
  const client = await checkClient(name, secret);
  if (client !== undefined) return client;
  const isKnown = isAccountName(name) && (await accounts.clients.find(name)) !== undefined;
  logInRecords.failed(operation, {
    name,
    reason: reasons.clientInvalid.name,
    isKnown,
    ...readOrigin(context),
  });
  throw clientInvalid("the client is unknown, or its secret is wrong or missing");
}

function readCredentials(
  { clientId, clientSecret }: ClientFields,
  authorization: string | null,
): { name: string; secret: string } {
  // Another scheme is that of a caller, not of a client: a gateway may add a token to all calls.
  if (authorization === null || !/^Basic\b/i.test(authorization))
    return { name: clientId, secret: clientSecret };
  const basic = /^Basic +([A-Za-z0-9+/]+=*) *$/i.exec(authorization)?.[1];
  if (basic === undefined || basic.length > maxBasicCharacters)
    throw clientInvalid("the authorization header does not have the form: Basic <base64 of client:secret>");
  const decoded = Buffer.from(basic, "base64").toString("utf8");
  const colon = decoded.indexOf(":");
  const name = decodeForm(decoded.slice(0, Math.max(colon, 0)));
  const secret = decodeForm(decoded.slice(colon + 1));
  if (colon < 0 || name === undefined || secret === undefined)
    throw clientInvalid("the authorization header does not hold a form-encoded client and secret");
  // RFC 6749, section 2.3: a client must not use more than one method. An equal client_id is harmless.
  if (clientSecret !== "" || (clientId !== "" && clientId !== name))
    throw refuse(
      "FIELD_INVALID",
      "the client authenticates by HTTP Basic and in the request; use one of them",
    );
  return { name, secret };
}

/** RFC 6749, section 2.3.1: both parts are encoded as in a form before base64. */
function decodeForm(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

function clientInvalid(message: string): ConnectError {
  const error = refuse(reasons.clientInvalid, message);
  error.metadata.set("www-authenticate", 'Basic realm="oauth", charset="UTF-8"');
  return error;
}

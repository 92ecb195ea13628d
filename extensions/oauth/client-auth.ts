/** Authenticates clients, by HTTP Basic or in the request (RFC 6749, section 2.3.1). */
import type { ConnectError, HandlerContext } from "@connectrpc/connect";
import { readOrigin } from "../../src/calls/call-values.ts";
import { refuse } from "../../src/errors.ts";
import { isAccountName } from "../../src/identity/account-name.ts";
import type { Accounts } from "../../src/identity/authenticate.ts";
import type { CheckClient } from "../../src/identity/client-secrets.ts";
import type { StoredClient } from "../../src/identity/clients.ts";
import type { LogInRecords, TokenOperation } from "../../src/identity/log-in-records.ts";
import { reasons } from "./reasons.ts";

/** Maximum length of base64 credentials: the longest client_id and client_secret, percent-encoded. */
const maxBasicCharacters = 8192;

/** Request fields that can identify a client. */
export interface ClientFields {
  readonly clientId: string;
  readonly clientSecret: string;
}

export interface ClientAuthDeps {
  readonly checkClient: CheckClient;
  readonly accounts: Pick<Accounts, "clients">;
  readonly logInRecords: Pick<LogInRecords, "succeeded" | "failed">;
}

/**
 * Authenticates the client of a call.
 *
 * @param operation the client's request, for the identity log
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
  // A different scheme belongs to the caller, not the client: a gateway may add a token to all calls.
  if (authorization === null || !/^Basic\b/i.test(authorization))
    return { name: clientId, secret: clientSecret };
  const basic = /^Basic +([A-Za-z0-9+/]+=*) *$/i.exec(authorization)?.[1];
  if (basic === undefined || basic.length > maxBasicCharacters)
    throw clientInvalid("the authorization header is malformed; send Basic <base64 of client:secret>");
  const decoded = Buffer.from(basic, "base64").toString("utf8");
  const colon = decoded.indexOf(":");
  const name = decodeForm(decoded.slice(0, Math.max(colon, 0)));
  const secret = decodeForm(decoded.slice(colon + 1));
  if (colon < 0 || name === undefined || secret === undefined)
    throw clientInvalid("the authorization header does not contain a form-encoded client and secret");
  // RFC 6749, section 2.3: a client must not use more than one method. Repeating the same client_id is
  // harmless.
  if (clientSecret !== "" || (clientId !== "" && clientId !== name))
    throw refuse(
      "FIELD_INVALID",
      "the client authenticates both by HTTP Basic and in the request; use only one",
    );
  return { name, secret };
}

/** RFC 6749, section 2.3.1: both parts are form-encoded before base64. */
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

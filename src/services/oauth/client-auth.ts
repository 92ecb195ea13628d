/** Reads how a client authenticates: by HTTP Basic, or in the request (RFC 6749, section 2.3.1). */
import type { ConnectError, HandlerContext } from "@connectrpc/connect";
import { refuse } from "../../errors.ts";
import type { StoredClient } from "../../identity/clients.ts";
import type { CheckCredentials } from "../../identity/credentials.ts";
import { readClientAddress } from "../../protocol/call-values.ts";

/** The fields of a request that can identify a client. */
export interface ClientFields {
  readonly clientId: string;
  readonly clientSecret: string;
}

/** Longer ones are not checked: generated secrets have 43 characters. */
const maxSecretCharacters = 1024;
const maxNameCharacters = 512;

/**
 * Authenticates the client of a call.
 *
 * @throws CLIENT_INVALID, FIELD_INVALID for two ways to authenticate, LOGIN_LIMITED
 */
export async function requireClient(
  checkClient: CheckCredentials<StoredClient>,
  fields: ClientFields,
  context: Pick<HandlerContext, "requestHeader" | "values" | "signal">,
): Promise<StoredClient> {
  const { name, password } = readCredentials(fields, context.requestHeader.get("authorization"));
  const isSane =
    name !== "" &&
    password !== "" &&
    name.length <= maxNameCharacters &&
    password.length <= maxSecretCharacters;
  const call = { clientAddress: readClientAddress(context), signal: context.signal };
  const client = isSane ? await checkClient({ name, password, ...call }) : undefined;
  if (client === undefined) throw clientInvalid("the client is unknown, or its secret is wrong or missing");
  return client;
}

function readCredentials(
  { clientId, clientSecret }: ClientFields,
  authorization: string | null,
): { name: string; password: string } {
  const basic = /^Basic +([A-Za-z0-9+/=_-]+) *$/i.exec(authorization ?? "")?.[1];
  if (basic === undefined) {
    if (authorization !== null)
      throw clientInvalid("the authorization header does not have the form: Basic <base64 of client:secret>");
    return { name: clientId, password: clientSecret };
  }
  const decoded = Buffer.from(basic, "base64").toString("utf8");
  const colon = decoded.indexOf(":");
  const name = decodeForm(decoded.slice(0, Math.max(colon, 0)));
  const password = decodeForm(decoded.slice(colon + 1));
  if (colon < 0 || name === undefined || password === undefined)
    throw clientInvalid("the authorization header does not hold a form-encoded client and secret");
  // RFC 6749, section 2.3: a client must not use more than one method. An equal client_id does no harm.
  if (clientSecret !== "" || (clientId !== "" && clientId !== name))
    throw refuse(
      "FIELD_INVALID",
      "the client authenticates by HTTP Basic and in the request; use one of them",
    );
  return { name, password };
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
  const error = refuse("CLIENT_INVALID", message);
  error.metadata.set("www-authenticate", 'Basic realm="oauth", charset="UTF-8"');
  return error;
}

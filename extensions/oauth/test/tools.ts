/** OAuth 2 client calls, as forms over HTTP. */
import type { NewClient } from "../../../src/identity/clients.ts";
import type { AccessServer } from "../../../test/access/access-server.ts";
import { describeClient, secret } from "../../../test/support/clients.ts";

export const exchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange";
export const accessTokenType = "urn:ietf:params:oauth:token-type:access_token";

/** An endpoint's answer. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into what a server answers
  readonly body: any;
}

/** Form parameters: an object, pairs if a name repeats, or text that is sent unchanged. */
export type Form = Record<string, string> | readonly (readonly [string, string])[] | string;

/** Sends a form. */
export async function postForm(
  { url }: Pick<AccessServer, "url">,
  path: string,
  form: Form,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const body =
    typeof form === "string" ? form : new URLSearchParams(form as Record<string, string>).toString();
  const type = { "content-type": "application/x-www-form-urlencoded" };
  const answer = await fetch(url + path, { method: "POST", body, headers: { ...type, ...headers } });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: text === "" ? undefined : JSON.parse(text) };
}

/** HTTP Basic with both parts form-encoded (RFC 6749, section 2.3.1). */
export function basicOf(name: string, password = secret): { authorization: string } {
  const encode = (text: string) => new URLSearchParams({ "": text }).toString().slice(1);
  return { authorization: `Basic ${Buffer.from(`${encode(name)}:${encode(password)}`).toString("base64")}` };
}

let clients = 0;

/**
 * Adds a client with a unique name.
 *
 * @returns the name
 */
export async function makeClient(
  { office }: AccessServer,
  rights: Partial<NewClient> = {},
  name = "",
): Promise<string> {
  clients += 1;
  const unique = name || `client-${clients}`;
  if (!(await office.clients.add(describeClient(unique, rights), new Date())))
    throw new Error(`the name ${unique} is taken`);
  return unique;
}

/** Requests a token for the client itself. */
export function requestToken(server: Pick<AccessServer, "url">, name: string, form = {}) {
  return postForm(server, "/oauth/token", { grant_type: "client_credentials", ...form }, basicOf(name));
}

/** Exchanges a token. */
export function exchange(server: Pick<AccessServer, "url">, name: string, token: string, form = {}) {
  const given = { grant_type: exchangeGrant, subject_token: token, subject_token_type: accessTokenType };
  return postForm(server, "/oauth/token", { ...given, ...form }, basicOf(name));
}

export function introspect(server: Pick<AccessServer, "url">, name: string, token: string): Promise<Answer> {
  return postForm(server, "/oauth/introspect", { token }, basicOf(name));
}

export function revoke(server: Pick<AccessServer, "url">, name: string, token: string): Promise<Answer> {
  return postForm(server, "/oauth/revoke", { token }, basicOf(name));
}

/**
 * Calls an RPC that requires the scope kms.read, on one of the client's keys.
 *
 * @returns status and reason
 */
export async function useToken(server: AccessServer, token: string, line = "GET /api/kms/keys") {
  const response = await server.rest(line, undefined, { authorization: `Bearer ${token}` });
  const body = (await response.json()) as { details?: { reason?: string }[] };
  return [response.status, body.details?.[0]?.reason].filter((part) => part !== undefined).join(" ");
}

function decode(token: string, part: number): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split(".")[part] ?? "", "base64url").toString());
}

export const headerOf = (token: string) => decode(token, 0);
export const claimsOf = (token: string) => decode(token, 1);

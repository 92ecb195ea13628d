/** The steps of a token: issued, verified with the published keys, used, and forged. */
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { type Caller, withoutToken } from "../../caller.ts";
import {
  computeThumbprint,
  type PublishedKey,
  readToken,
  type TokenParts,
  verifyToken,
  withPayload,
} from "../../jwt.ts";

const { issueToken, verifyToken: verifyOnServer, getJwks, getSecureData } = TokenService.method;

interface IssuedToken {
  readonly token: string;
  readonly parts: TokenParts;
}

export async function logIn(
  { call }: Caller,
  { username, password }: { readonly username: string; readonly password: string },
): Promise<IssuedToken> {
  const { token } = await call(issueToken, { username, password }, withoutToken);
  return { token, parts: readToken(token) };
}

/** Verifies the token with the key that its header names. */
export async function verifyOnBothSides({ call }: Caller, { token, parts }: IssuedToken) {
  const { keys } = await call(getJwks, {}, withoutToken);
  const key: PublishedKey | undefined = keys.find(({ kid }) => kid === parts.header.kid);
  if (key === undefined) throw new Error("the key set does not have the token's key");
  const thumbprint = await computeThumbprint(key);
  const browser = await verifyToken(parts, key);
  const { valid: server } = await call(verifyOnServer, { token }, withoutToken);
  return { key, count: keys.length, thumbprint, verdicts: { server, browser } };
}

/** Makes a call without the token and with it. */
export async function presentToken({ call, callRefused }: Caller, { token }: IssuedToken) {
  const refusal = await callRefused(getSecureData, {}, withoutToken);
  const { message, subject } = await call(getSecureData, {}, { token });
  return { refusal, message, subject };
}

/** Puts another subject into the token and keeps the signature. */
export async function forgeToken(
  { call, callRefused }: Caller,
  { token, parts }: IssuedToken,
  { key }: { readonly key: PublishedKey },
) {
  const forged = withPayload(token, { ...parts.payload, sub: "mallory" });
  const forgedParts = readToken(forged);
  const browser = await verifyToken(forgedParts, key);
  const { valid: server, reason } = await call(verifyOnServer, { token: forged }, withoutToken);
  const refusal = await callRefused(getSecureData, {}, { token: forged });
  const [before, after] = [parts.payloadText, forgedParts.payloadText];
  return { before, after, verdicts: { server, browser }, reason, refusal };
}

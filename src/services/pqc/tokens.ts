/** Issues and checks tokens. */
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type { VerifyTokenRequest } from "#gen/pqc/token_service_pb.ts";
import { readOrigin } from "../../calls/call-values.ts";
import { deviceUse, findHolder } from "../../identity/authenticate.ts";
import type { LogIn, LogInInput } from "../../identity/log-in.ts";
import type { ModuleDeps } from "../service-module.ts";
import { verify } from "./one-time-keys.ts";

/** `issuerUrl` is an audience that an access token must name. */
export type CheckTokenDeps = Pick<ModuleDeps, "provider" | "issuer" | "accounts" | "issuerUrl">;

/**
 * Checks a token of this server, or an ML-DSA-65 signature. Returns the reason if it is not valid.
 *
 * @throws KEY_INVALID, LENGTH_INVALID for a malformed key or signature
 */
export async function checkToken(
  { provider, issuer, accounts, issuerUrl }: CheckTokenDeps,
  input: VerifyTokenRequest,
) {
  if (input.token === "") {
    const valid = await verify(provider, { ...input, algorithm: "ML-DSA-65" });
    return valid ? { valid } : { valid, reason: "the signature does not verify" };
  }
  const check = await issuer.check(input.token);
  if (!check.ok) return { valid: false, reason: check.message };
  if (check.access && !check.access.audiences.some((audience) => audience === issuerUrl))
    return { valid: false, reason: "the token is for other servers; see its aud claim" };
  const holder = await findHolder(accounts, check);
  if (holder === undefined) {
    const isDevice = check.use === deviceUse;
    const change = isDevice ? "device or its owner was removed" : "user was removed or has a new password";
    return { valid: false, reason: check.access ? "the token was revoked" : `the token's ${change}` };
  }
  const { subject, use, role, expiresAt } = holder;
  return { valid: true, subject, use, roles: [role], expiresAt: timestampFromDate(expiresAt) };
}

/**
 * Logs a caller in.
 *
 * @param header JWT header members besides alg, typ and kid
 */
export async function issueToken(
  logIn: LogIn,
  { username, password }: Pick<LogInInput, "username" | "password">,
  context: HandlerContext,
  header: LogInInput["header"] = {},
) {
  const { signal } = context;
  const { token, expiresAt } = await logIn({ username, password, ...readOrigin(context), signal, header });
  return { token, expiresAt: timestampFromDate(expiresAt) };
}

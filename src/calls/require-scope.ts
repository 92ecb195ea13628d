/** Refuses callers whose access token lacks a scope. */
import type { DescMethod } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { refuse } from "../errors.ts";
import { type Caller, callerKey } from "./call-values.ts";
import { findScope } from "./service-profile.ts";

/** The challenge for a request that needs more privileges than its token has (RFC 6750, section 3.1). */
export const insufficient = 'Bearer error="insufficient_scope"';

/**
 * Refuses a caller whose token has scopes, but not this one. A token with scopes cannot make a call that has
 * none. RFC 6750, section 3.1, defines the form of the challenge.
 *
 * @param call the name of an RPC, or the path of a page
 * @param findScope returns the scope of the call
 * @throws SCOPE_MISSING
 */
export function requireScope(call: string, { scopes }: Caller, findScope: () => string): void {
  if (scopes === undefined) return;
  const scope = findScope();
  if (scope !== "" && scopes.includes(scope)) return;
  const known = scopes.length === 0 ? "no scopes" : `the scopes ${scopes.join(" ")}`;
  const error = refuse(
    "SCOPE_MISSING",
    scope === ""
      ? `${call} cannot be called with a token that has scopes; use a token without scopes`
      : `${call} needs the scope ${scope}, and the token has ${known}`,
    { scope },
  );
  const needed = scope === "" ? "" : `, scope="${scope}"`;
  error.metadata.set("www-authenticate", `${insufficient}${needed}`);
  throw error;
}

/**
 * Requires the scope of a different call as well, for a request that has the effect of that call. Without it, a
 * token for one service could use what a different service keeps.
 *
 * @param method the other call, whose proto declares its scope
 * @throws SCOPE_MISSING
 */
export function requireScopeOf(context: Pick<HandlerContext, "method" | "values">, method: DescMethod): void {
  const caller = context.values.get(callerKey);
  if (caller !== undefined) requireScope(context.method.name, caller, () => findScope(method, {}));
}

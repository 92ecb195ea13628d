/** Reads the principal of a call, as services see it. */
import type { HandlerContext } from "@connectrpc/connect";
import { callerKey, clientKey, repeatableKey, requestIdKey } from "../calls/call-values.ts";
import type { IdempotentCall } from "../records/idempotency.ts";
import { type Principal, systemPrincipal } from "../records/ownership.ts";

/**
 * Returns the principal of a call. Without authentication, it is the system, which sees all records, as
 * administrators do.
 */
export function readPrincipal({ values }: Pick<HandlerContext, "values">): Principal {
  const caller = values.get(callerKey);
  const call = { clientAddress: values.get(clientKey), requestId: values.get(requestIdKey) };
  if (caller === undefined) return { ...systemPrincipal, ...call };
  const { subject: user, role, access } = caller;
  const origin = { ...call, ...(access && { access }) };
  // `authenticate` adds the user's ID; the server passes it through unread.
  const userId = "userId" in caller && typeof caller.userId === "string" ? caller.userId : user;
  if (role === "device") return { user, userId, owner: userId, deviceId: user, ...origin };
  return { user, userId, owner: role === "admin" ? undefined : userId, ...origin };
}

/** The caller of a retryable call. */
export interface CallerInput {
  readonly principal: Principal;
  /** Owner of what the call creates. */
  readonly owner: string;
  /** Aborts when the caller disconnects or stops waiting. */
  readonly signal: AbortSignal;
  readonly idempotentCall: IdempotentCall | undefined;
}

export function readCaller(context: Pick<HandlerContext, "values" | "signal">): CallerInput {
  const principal = readPrincipal(context);
  const { userId: owner } = principal;
  return { principal, owner, signal: context.signal, idempotentCall: readIdempotentCall(context) };
}

/** Returns whether a caller may read the whole audit log. Without authentication, anyone may. */
export function isAuditor({ values }: Pick<HandlerContext, "values">): boolean {
  const role = values.get(callerKey)?.role;
  return role === undefined || role === "auditor" || role === "admin";
}

/** Returns the idempotency key of a call, if any. Each user has separate keys, and each client acting for one. */
function readIdempotentCall(context: Pick<HandlerContext, "values">): IdempotentCall | undefined {
  const repeatable = context.values.get(repeatableKey);
  if (repeatable === undefined) return undefined;
  const { user, userId, access } = readPrincipal(context);
  const isActing = access !== undefined && access.clientId !== user;
  // An ID contains no space.
  return { ...repeatable, userId: isActing ? `${userId} ${access.clientId}` : userId };
}

/** Reads the principal of a call, as services know it. */
import type { HandlerContext } from "@connectrpc/connect";
import { callerKey, repeatableKey } from "../protocol/call-values.ts";
import type { IdempotentCall } from "../records/idempotency.ts";
import { type Principal, systemPrincipal } from "../records/ownership.ts";

/**
 * Returns the principal of a call. Without authentication it is the system, which sees all records. Administrators
 * see all records too.
 */
export function readPrincipal({ values }: Pick<HandlerContext, "values">): Principal {
  const caller = values.get(callerKey);
  if (caller === undefined) return systemPrincipal;
  const { subject: user, role } = caller;
  // `authenticate` adds the user's ID; the server passes it on without looking.
  const userId = "userId" in caller && typeof caller.userId === "string" ? caller.userId : user;
  if (role === "device") return { user, userId, owner: userId, deviceId: user };
  return { user, userId, owner: role === "admin" ? undefined : userId };
}

/** Returns the idempotency key of a call, if it has one. Each user has keys of their own. */
export function readIdempotentCall(context: Pick<HandlerContext, "values">): IdempotentCall | undefined {
  const repeatable = context.values.get(repeatableKey);
  return repeatable && { ...repeatable, userId: readPrincipal(context).userId };
}

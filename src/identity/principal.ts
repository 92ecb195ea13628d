/** Who makes a call, as services know them. */
import type { HandlerContext } from "@connectrpc/connect";
import { callerKey, repeatableKey } from "../protocol/call-values.ts";
import type { OnceCall } from "../records/idempotency.ts";
import { everybody, type Viewer } from "../records/ownership.ts";

/**
 * Tells who makes a call. Where no token is needed, that is the system, which sees everybody's records; so do
 * administrators.
 */
export function viewerOf({ values }: Pick<HandlerContext, "values">): Viewer {
  const caller = values.get(callerKey);
  if (caller === undefined) return everybody;
  const { subject: user, role } = caller;
  // `authenticate` adds the user's ID; the server passes it on without looking.
  const userId = "userId" in caller && typeof caller.userId === "string" ? caller.userId : user;
  if (role === "device") return { user, userId, owner: userId, deviceId: user };
  return { user, userId, owner: role === "admin" ? undefined : userId };
}

/** Tells under which idempotency key a call came, if it has one; each user has keys of their own. */
export function onceOf(context: Pick<HandlerContext, "values">): OnceCall | undefined {
  const repeatable = context.values.get(repeatableKey);
  return repeatable && { ...repeatable, userId: viewerOf(context).userId };
}

/** Lets a call through only if its caller may make it, as the RPC's option `qsp.access` says. */
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import type { HandlerContext, Interceptor } from "@connectrpc/connect";
import { createContextKey } from "@connectrpc/connect";
import { Access, access } from "#gen/qsp/access_pb.ts";

/** Who makes a call, as a valid token says. */
export interface Caller {
  readonly subject: string;
  readonly issuedAt: Date;
  readonly expiresAt: Date;
}

/** How a server finds out who calls. */
export interface AccessPolicy {
  /** Whether calls marked ACCESS_AUTHENTICATED want a token ("token") or not ("open"). */
  readonly mode: "open" | "token";
  /** Checks the `authorization` header. @throws a refusal with one of the TOKEN_… reasons */
  readonly authenticate: (authorization: string | null) => Promise<Caller>;
}

/** Where handlers find the caller; undefined if the call needed no token. */
export const callerKey = createContextKey<Caller | undefined>(undefined, { description: "caller" });

/** Tells who makes a call that wants a token. @throws Error for one that does not, which is a bug */
export function callerOf({ values }: Pick<HandlerContext, "values">): Caller {
  const caller = values.get(callerKey);
  if (caller === undefined) throw new Error("the call was not authenticated");
  return caller;
}

/**
 * Authenticates the caller of every call that wants it.
 *
 * A call without the option is refused to be served: see requireAccess.
 */
export function accessInterceptor(policy: AccessPolicy): Interceptor {
  return (next) => async (req) => {
    if (needsToken(req.method, policy.mode)) {
      req.contextValues.set(callerKey, await policy.authenticate(req.header.get("authorization")));
    }
    return next(req);
  };
}

function needsToken(method: DescMethod, mode: AccessPolicy["mode"]): boolean {
  if (isInfrastructure(method)) return false;
  switch (getOption(method, access)) {
    case Access.PUBLIC:
      return false;
    case Access.AUTHENTICATED:
      return mode === "token";
    default:
      return true;
  }
}

/** Reflection and health (packages grpc.*) are not ours to annotate, and public. */
function isInfrastructure(method: DescMethod): boolean {
  return method.parent.typeName.startsWith("grpc.");
}

/** @throws Error naming the RPC that does not say who may call it */
export function requireAccess(methods: Iterable<DescMethod>): void {
  for (const method of methods) {
    if (!isInfrastructure(method) && getOption(method, access) === Access.UNSPECIFIED) {
      throw new Error(
        `${method.parent.typeName}.${method.name} does not say who may call it: set option (qsp.access)`,
      );
    }
  }
}

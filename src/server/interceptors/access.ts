/** Lets a call through only if its caller may make it, as the RPC's option `qsp.access` says. */
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import type {
  HandlerContext,
  Interceptor,
  StreamRequest,
  StreamResponse,
  UnaryResponse,
} from "@connectrpc/connect";
import { Code, ConnectError, createContextKey } from "@connectrpc/connect";
import { Access, access } from "#gen/qsp/access_pb.ts";
import { refuse } from "../../errors.ts";
import { raceSignal } from "../../transcoding/interrupt.ts";
import { mapStream, untilAborted } from "./streams.ts";

/** What somebody may do. A device may do nothing but send its own readings. */
export type Role = "user" | "auditor" | "admin" | "device";

/** Who makes a call, as a valid token says. */
export interface Caller {
  readonly subject: string;
  readonly role: Role;
  readonly issuedAt: Date;
  readonly expiresAt: Date;
}

/** How a server finds out who calls. */
export interface AccessPolicy {
  /** Whether calls that are not for the public want a token ("token"), or only those marked ACCESS_TOKEN ("open"). */
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
 * Authenticates the caller of every call that wants it, and sees whether the call is for somebody of that role.
 *
 * A call without the option is refused to be served: see requireAccess.
 */
export function accessInterceptor(policy: AccessPolicy): Interceptor {
  return (next) => async (req) => {
    const roles = rolesFor(req.method, policy.mode);
    if (roles !== undefined) {
      const authorization = req.header.get("authorization");
      const admit = async (): Promise<Caller> => {
        const caller = await policy.authenticate(authorization);
        if (roles.includes(caller.role)) return caller;
        throw refuseRole(req.method, caller.role, roles);
      };
      req.contextValues.set(callerKey, await admit());
      if (req.stream) return whileAdmitted(req, next, admit);
    }
    return next(req);
  };
}

/** Milliseconds between looks whether the caller of a stream may still be there. */
const lookMs = 10_000;

/** Ends a stream, which may last for days, when its token ends or its caller is removed. */
async function whileAdmitted(
  req: StreamRequest,
  next: (req: StreamRequest) => Promise<UnaryResponse | StreamResponse>,
  admit: () => Promise<Caller>,
): Promise<UnaryResponse | StreamResponse> {
  const ending = new AbortController();
  const timer = setInterval(() => {
    admit().catch((error: unknown) => {
      // That nobody can be asked now, as while the store is away, is no answer.
      if (error instanceof ConnectError && refusesCaller(error)) ending.abort(error);
    });
  }, lookMs).unref();
  const stop = (): void => clearInterval(timer);
  req.signal.addEventListener("abort", stop, { once: true });
  const signal = AbortSignal.any([req.signal, ending.signal]);
  try {
    const res = await raceSignal(next({ ...req, signal }), ending.signal);
    if (!res.stream) {
      stop();
      return res;
    }
    return { ...res, message: mapStream(untilAborted(res.message, ending.signal), { end: stop }) };
  } catch (error) {
    stop();
    throw error;
  }
}

function refusesCaller({ code }: ConnectError): boolean {
  return code === Code.Unauthenticated || code === Code.PermissionDenied;
}

const users: readonly Role[] = ["user", "auditor", "admin"];

/** Who may make a call; undefined if anyone may, with or without a token. */
export function rolesFor(method: DescMethod, mode: AccessPolicy["mode"]): readonly Role[] | undefined {
  if (isInfrastructure(method)) return undefined;
  const stated = getOption(method, access);
  if (stated === Access.TOKEN) return users;
  if (mode === "open") return undefined;
  switch (stated) {
    case Access.PUBLIC:
      return undefined;
    case Access.AUTHENTICATED:
      return users;
    case Access.AUDITOR:
      return ["auditor", "admin"];
    case Access.ADMIN:
      return ["admin"];
    case Access.DEVICE:
      return [...users, "device"];
    default:
      return [];
  }
}

function refuseRole(method: DescMethod, role: Role, roles: readonly Role[]): Error {
  const known = roles.join(" or ");
  return refuse(
    "ROLE_MISSING",
    `${method.name} is for the role ${known}, and the token is of the role ${role}`,
    {
      role,
      roles: roles.join(","),
    },
  );
}

/** Reflection and health (packages grpc.*) are not ours to annotate, and public. */
export function isInfrastructure(method: DescMethod): boolean {
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

/**
 * Admits a call only if its caller may make it, according to the RPC's `qsp.access` option or its service
 * profile.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { Code, ConnectError } from "@connectrpc/connect";
import { Access } from "#gen/qsp/access_pb.ts";
import { type Caller, callerKey, type Role } from "../../calls/call-values.ts";
import { raceSignal } from "../../calls/interrupt.ts";
import { findAccess, findScope, type ServiceProfiles } from "../../calls/service-profile.ts";
import { refuse } from "../../errors.ts";
import { mapStream, untilAborted } from "./streams.ts";

/** How a server authenticates callers. */
export interface AccessPolicy {
  /**
   * Which calls need a token: all that are not public ("token"), or only those marked ACCESS_TOKEN or
   * ACCESS_DEVICE_TOKEN ("open").
   */
  readonly mode: "open" | "token";
  /**
   * Checks the `authorization` header.
   *
   * @throws a refusal with one of the TOKEN_… reasons
   */
  readonly authenticate: (authorization: string | null) => Promise<Caller>;
}

/** Creates the function that returns the roles that may make a call, computed once per method. */
export function createRoles(
  mode: AccessPolicy["mode"],
  profiles: ServiceProfiles,
): (method: DescMethod) => readonly Role[] | undefined {
  const byMethod = new Map<DescMethod, readonly Role[] | undefined>();
  return (method) => {
    if (!byMethod.has(method)) byMethod.set(method, rolesFor(method, mode, profiles));
    return byMethod.get(method);
  };
}

/** @throws ROLE_MISSING */
export function requireRole(method: DescMethod, caller: Caller, roles: readonly Role[]): void {
  if (!roles.includes(caller.role)) throw roleMissing(method, caller.role, roles);
}

/**
 * Refuses a caller whose token has scopes, but not the scope of the RPC. A token with scopes cannot call an
 * RPC that has none.
 *
 * @throws SCOPE_MISSING
 */
export function requireScope(method: DescMethod, { scopes }: Caller, profiles: ServiceProfiles): void {
  if (scopes === undefined) return;
  const scope = findScope(method, profiles);
  if (scope === "" || !scopes.includes(scope)) throw scopeMissing(method.name, scope, scopes);
}

const insufficient = 'Bearer error="insufficient_scope"';

/** RFC 6750, section 3.1, defines the form of the challenge. */
export function scopeMissing(call: string, scope: string, scopes: readonly string[]): Error {
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
  return error;
}

/**
 * Notified when callers cannot be checked.
 *
 * @param isRepeated whether the previous check failed too
 */
export type OnUnchecked = (error: unknown, isRepeated: boolean) => void;

/** Ends a stream, which may last for days, when its token expires or its caller is removed. */
export function streamAccessInterceptor(onUnchecked: OnUnchecked): Interceptor {
  const watch = createCallerWatch(onUnchecked);
  return (next) => async (req) => {
    const caller = req.contextValues.get(callerKey);
    if (!req.stream || caller === undefined) return next(req);
    const ending = new AbortController();
    const stop = watch(caller, (error) => ending.abort(error));
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
  };
}

/** Milliseconds between checks that stream callers are still authorized. */
const revocationPollMs = 500;

/**
 * Calls back when a caller is no longer authorized.
 *
 * @returns a function that stops the watch
 */
type CallerWatch = (caller: Caller, onRefused: (error: unknown) => void) => () => void;

/** Callers whose tokens are revoked together, so that one check serves them all. */
interface CallerGroup {
  readonly streams: Map<symbol, { readonly caller: Caller; readonly onRefused: (error: unknown) => void }>;
  isChecking: boolean;
}

/** Checks every user with open streams twice a second, regardless of the number of streams. */
function createCallerWatch(onUnchecked: OnUnchecked): CallerWatch {
  let isUnchecked = false;
  const groups = new Map<string, CallerGroup>();
  let timer: NodeJS.Timeout | undefined;

  const check = async (group: CallerGroup, caller: Caller): Promise<void> => {
    group.isChecking = true;
    try {
      await caller.revocation?.check();
      isUnchecked = false;
    } catch (error) {
      if (error instanceof ConnectError && refusesCaller(error)) {
        for (const { onRefused } of group.streams.values()) onRefused(error);
      } else {
        // A store failure says nothing about the caller.
        onUnchecked(error, isUnchecked);
        isUnchecked = true;
      }
    } finally {
      group.isChecking = false;
    }
  };
  const checkAll = (): void => {
    for (const group of groups.values()) {
      const callers = [...group.streams.values()];
      const nowMs = Date.now();
      for (const { caller, onRefused } of callers)
        if (caller.expiresAt.getTime() <= nowMs)
          onRefused(
            refuse("TOKEN_EXPIRED", "the token of this stream has expired; log in again and reconnect"),
          );
      const [first] = callers;
      if (first !== undefined && !group.isChecking) void check(group, first.caller);
    }
  };

  return (caller, onRefused) => {
    const id = Symbol();
    const name = caller.revocation?.group ?? "";
    const group = groups.get(name) ?? { streams: new Map(), isChecking: false };
    groups.set(name, group);
    group.streams.set(id, { caller, onRefused });
    timer ??= setInterval(checkAll, revocationPollMs).unref();
    return () => {
      group.streams.delete(id);
      // A later stream may have created a group with the same name.
      if (group.streams.size === 0 && groups.get(name) === group) groups.delete(name);
      if (groups.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  };
}

function refusesCaller({ code }: ConnectError): boolean {
  return code === Code.Unauthenticated || code === Code.PermissionDenied;
}

const users: readonly Role[] = ["user", "auditor", "admin"];

/** The roles that may make a call; undefined if it needs no token. */
export function rolesFor(
  method: DescMethod,
  mode: AccessPolicy["mode"],
  profiles: ServiceProfiles,
): readonly Role[] | undefined {
  if (isInfrastructure(method)) return undefined;
  const stated = findAccess(method, profiles);
  if (stated === Access.TOKEN) return users;
  if (stated === Access.DEVICE_TOKEN) return ["device"];
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

function roleMissing(method: DescMethod, role: Role, roles: readonly Role[]): Error {
  const known = roles.join(" or ");
  const error = refuse(
    "ROLE_MISSING",
    `${method.name} requires the role ${known}; the token has the role ${role}`,
    {
      role,
      roles: roles.join(","),
    },
  );
  // RFC 6750, section 3.1: the request needs more privileges than the token has.
  error.metadata.set("www-authenticate", insufficient);
  return error;
}

/** Reflection and health (packages grpc.*) are public. Their third-party protos have no `qsp.access`. */
export function isInfrastructure(method: DescMethod): boolean {
  return method.parent.typeName.startsWith("grpc.");
}

/** @throws Error naming an RPC that neither sets `qsp.access` nor has a row in its service profile */
export function requireAccess(methods: Iterable<DescMethod>, profiles: ServiceProfiles = {}): void {
  for (const method of methods) {
    if (isInfrastructure(method) || findAccess(method, profiles) !== Access.UNSPECIFIED) continue;
    const service = method.parent.typeName;
    const remedy = service in profiles ? "add a row to its service profile" : "set option (qsp.access)";
    throw new Error(`${service}.${method.name} does not declare who may call it: ${remedy}`);
  }
}

/**
 * Admits a call only if its caller may make it, according to the RPC's `qsp.access` option or its service
 * profile.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import { Access } from "#gen/qsp/access_pb.ts";
import type { Caller, Role } from "../../calls/call-values.ts";
import { insufficient } from "../../calls/require-scope.ts";
import { findAccess, type ServiceProfiles } from "../../calls/service-profile.ts";
import { refuse } from "../../errors.ts";

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
  const find = (method: DescMethod): readonly Role[] | undefined => rolesFor(method, mode, profiles);
  return (method) => byMethod.getOrInsertComputed(method, find);
}

/**
 * @param call the name of an RPC, or the path of a page
 * @throws ROLE_MISSING
 */
export function requireRole(call: string, { role }: Caller, roles: readonly Role[]): void {
  if (roles.includes(role)) return;
  const error = refuse(
    "ROLE_MISSING",
    `${call} requires the role ${roles.join(" or ")}; the token has the role ${role}`,
    { role, roles: roles.join(",") },
  );
  // RFC 6750, section 3.1: the request needs more privileges than the token has.
  error.metadata.set("www-authenticate", insufficient);
  throw error;
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

/** Facts about a service that its protos do not state, mostly because they are third-party protos. */
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { Access, access, scope } from "#gen/qsp/access_pb.ts";
import { reason } from "#gen/qsp/reasons_pb.ts";
import type { NamedReason } from "../errors/reason.ts";

/**
 * The REST conventions that google.api.http leaves open.
 *
 * - "own": an error is `{"status":"error","code":"NOT_FOUND",…}`. Unknown query parameters are refused.
 * - "oauth": an error is `{"error":"invalid_client",…}` (RFC 6749, section 5.2). A body may be a form, in
 * which
 *   unknown and empty parameters are ignored.
 * - "google": an error is `{"error":{"code":404,"status":"NOT_FOUND",…}}` (google.aip.dev/193), and a query
 * may
 *   contain the system parameters of Google's APIs (cloud.google.com/apis/docs/system-parameters). The body of a
 *   request without fields may be `""`, and a field mask may use proto names: Google's Node client sends both.
 */
export type RestStyle = "own" | "oauth" | "google";

/** The access-token scope for /metrics, which is not an RPC. */
export const metricsScope = "metrics.read";

/** Facts about one RPC. */
export interface RpcProfile {
  readonly access: Access;
  /** The required access-token scope: see qsp.scope. */
  readonly scope: string;
  /** Maximum message bytes if no proto rules limit the message. Default: the general limit. */
  readonly maxBytes?: number;
  /** See qsp.reason. */
  readonly reasons?: readonly string[];
  /** One or two sentences for the REST description; omitted for an RPC that is always refused. */
  readonly comment?: string;
}

/** Facts about one service. */
export interface ServiceProfile {
  readonly restStyle: RestStyle;
  /** Omitted if the protos have comments. */
  readonly comment?: string;
  /** Reasons that only this service returns, declared by an extension. */
  readonly reasons?: readonly NamedReason[];
  /**
   * Rows by RPC name: "GetKeyRing". The server refuses to start if an RPC has no row. Omitted if the protos
   * set qsp.access and qsp.scope.
   */
  readonly rpcs?: Readonly<Record<string, RpcProfile>>;
  /**
   * Services of the same vendor that this server lacks, by full name, with a pattern for the REST paths of
   * their calls. It takes precedence over matching routes. Such calls fail with CALL_UNSUPPORTED.
   */
  readonly absent?: Readonly<Record<string, RegExp>>;
}

/** Profiles by full service name. A service without one declares everything in its protos. */
export type ServiceProfiles = Readonly<Record<string, ServiceProfile>>;

/** Finds the row of an RPC in its service profile, empty if it is missing; undefined if its protos declare all. */
function findRow({ parent, name }: DescMethod, profiles: ServiceProfiles): Partial<RpcProfile> | undefined {
  const rpcs = profiles[parent.typeName]?.rpcs;
  return rpcs && (rpcs[name] ?? {});
}

/** Returns who may call an RPC, from its service profile or its `qsp.access` option. */
export function findAccess(method: DescMethod, profiles: ServiceProfiles): Access {
  const row = findRow(method, profiles);
  return row === undefined ? getOption(method, access) : (row.access ?? Access.UNSPECIFIED);
}

/**
 * Returns the access-token scope that an RPC requires, from its service profile or its `qsp.scope` option.
 */
export function findScope(method: DescMethod, profiles: ServiceProfiles): string {
  const row = findRow(method, profiles);
  return row === undefined ? getOption(method, scope) : (row.scope ?? "");
}

/** Returns the reasons for which an RPC fails, from its service profile or its `qsp.reason` options. */
export function findReasons(method: DescMethod, profiles: ServiceProfiles): readonly string[] {
  const row = findRow(method, profiles);
  return row === undefined ? getOption(method, reason) : (row.reasons ?? []);
}

/** Returns whether an RPC is always refused, because the server implements only part of its service. */
export function isAlwaysRefused(method: DescMethod, profiles: ServiceProfiles): boolean {
  const row = findRow(method, profiles);
  return row !== undefined && row.comment === undefined;
}

/** The comments of profiles by full name, in the same form as gen/comments.ts for our own protos. */
export function listComments(profiles: ServiceProfiles): Record<string, string> {
  const comments: Record<string, string> = {};
  for (const [service, { comment, rpcs = {} }] of Object.entries(profiles)) {
    if (comment !== undefined) comments[service] = comment;
    for (const [rpc, { comment }] of Object.entries(rpcs))
      if (comment !== undefined) comments[`${service}.${rpc}`] = comment;
  }
  return comments;
}

/** Facts that a server needs about a service and that its protos do not state, mostly because they are not ours. */
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { Access, access, scope } from "#gen/qsp/access_pb.ts";
import { reason } from "#gen/qsp/reasons_pb.ts";
import type { NamedReason } from "../errors/reason.ts";

/**
 * The conventions of REST that google.api.http leaves open.
 *
 * - "own": an error is `{"status":"error","code":"NOT_FOUND",…}`. Unknown query parameters are refused.
 * - "oauth": an error is `{"error":"invalid_client",…}` (RFC 6749, section 5.2). A body may be a form, in which unknown and
 *   empty parameters are ignored.
 * - "google": an error is `{"error":{"code":404,"status":"NOT_FOUND",…}}` (google.aip.dev/193), and a query may have
 *   the system parameters of Google's APIs (cloud.google.com/apis/docs/system-parameters). The body of a request without
 *   fields may be `""`, and a field mask may have the names of the proto: Google's client for Node sends both.
 */
export type RestStyle = "own" | "oauth" | "google";

/** The scope of access tokens for /metrics, which is not an RPC. */
export const metricsScope = "metrics.read";

/** One RPC. */
export interface RpcProfile {
  readonly access: Access;
  /** The scope that an access token needs: see qsp.scope. */
  readonly scope: string;
  /** Bytes that a message may have, where the protos have no rules that limit it; the general limit if left out. */
  readonly maxBytes?: number;
  /** See qsp.reason. */
  readonly reasons?: readonly string[];
  /** One or two sentences for the description of the REST calls; left out for an RPC that is always refused. */
  readonly comment?: string;
}

/** One service. */
export interface ServiceProfile {
  readonly restStyle: RestStyle;
  /** Left out if the protos have comments. */
  readonly comment?: string;
  /** Reasons that only its calls give: those that an extension declares. */
  readonly reasons?: readonly NamedReason[];
  /**
   * By the names of the RPCs: "GetKeyRing". A server does not start if an RPC has no row. Left out if the protos have
   * the options qsp.access and qsp.scope.
   */
  readonly rpcs?: Readonly<Record<string, RpcProfile>>;
  /**
   * Services of the same vendor that this server does not have, by their full names, and what the REST paths of their
   * calls match, also where a pattern of a route matches it. Their calls fail with CALL_UNSUPPORTED.
   */
  readonly absent?: Readonly<Record<string, RegExp>>;
}

/** Profiles by the full names of services. A service without one says everything in its protos. */
export type ServiceProfiles = Readonly<Record<string, ServiceProfile>>;

/** Finds who may call an RPC: in the profile of its service, or in its option `qsp.access`. */
export function findAccess(method: DescMethod, profiles: ServiceProfiles): Access {
  const rpcs = profiles[method.parent.typeName]?.rpcs;
  if (rpcs === undefined) return getOption(method, access);
  return rpcs[method.name]?.access ?? Access.UNSPECIFIED;
}

/** Finds the scope that an access token needs for an RPC: in the profile of its service, or in its option `qsp.scope`. */
export function findScope(method: DescMethod, profiles: ServiceProfiles): string {
  const rpcs = profiles[method.parent.typeName]?.rpcs;
  return rpcs === undefined ? getOption(method, scope) : (rpcs[method.name]?.scope ?? "");
}

/** Finds the reasons with which an RPC fails: in the profile of its service, or in its options `qsp.reason`. */
export function findReasons(method: DescMethod, profiles: ServiceProfiles): readonly string[] {
  const rpcs = profiles[method.parent.typeName]?.rpcs;
  return rpcs === undefined ? getOption(method, reason) : (rpcs[method.name]?.reasons ?? []);
}

/** Tells whether an RPC is always refused, because the server has only a part of its service. */
export function isAlwaysRefused(method: DescMethod, profiles: ServiceProfiles): boolean {
  const rpcs = profiles[method.parent.typeName]?.rpcs;
  return rpcs !== undefined && rpcs[method.name]?.comment === undefined;
}

/** The comments of profiles by full name, as gen/comments.ts has those of our own protos. */
export function listComments(profiles: ServiceProfiles): Record<string, string> {
  const comments: Record<string, string> = {};
  for (const [service, { comment, rpcs = {} }] of Object.entries(profiles)) {
    if (comment !== undefined) comments[service] = comment;
    for (const [rpc, { comment }] of Object.entries(rpcs))
      if (comment !== undefined) comments[`${service}.${rpc}`] = comment;
  }
  return comments;
}

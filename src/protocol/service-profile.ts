/** What a server must know of a service whose protos are not ours, and therefore do not say it. */
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { Access, access } from "#gen/qsp/access_pb.ts";

/**
 * The conventions of REST that google.api.http leaves open.
 *
 * - "own": an error is `{"status":"error","code":"NOT_FOUND",…}`. Unknown query parameters are refused.
 * - "google": an error is `{"error":{"code":404,"status":"NOT_FOUND",…}}` (google.aip.dev/193), and a query may have
 *   the system parameters of Google's APIs (cloud.google.com/apis/docs/system-parameters). The body of a request without
 *   fields may be `""`, and a field mask may have the names of the proto: Google's client for Node sends both.
 */
export type RestStyle = "own" | "google";

/** One RPC. */
export interface RpcProfile {
  readonly access: Access;
  /** One or two sentences for the description of the REST calls; left out for an RPC that is always refused. */
  readonly comment?: string;
}

/** One service. */
export interface ServiceProfile {
  readonly restStyle: RestStyle;
  readonly comment: string;
  /** By the names of the RPCs: "GetKeyRing". A server does not start if an RPC has no row. */
  readonly rpcs: Readonly<Record<string, RpcProfile>>;
}

/** Profiles by the full names of services. A service without one says everything in its protos. */
export type ServiceProfiles = Readonly<Record<string, ServiceProfile>>;

/** Finds who may call an RPC: in the profile of its service, or in its option `qsp.access`. */
export function findAccess(method: DescMethod, profiles: ServiceProfiles): Access {
  const profile = profiles[method.parent.typeName];
  if (profile === undefined) return getOption(method, access);
  return profile.rpcs[method.name]?.access ?? Access.UNSPECIFIED;
}

/** Tells whether an RPC is always refused, because the server has only a part of its service. */
export function isAlwaysRefused(method: DescMethod, profiles: ServiceProfiles): boolean {
  const profile = profiles[method.parent.typeName];
  return profile !== undefined && profile.rpcs[method.name]?.comment === undefined;
}

/** The comments of profiles by full name, as gen/comments.ts has those of our own protos. */
export function listComments(profiles: ServiceProfiles): Record<string, string> {
  const comments: Record<string, string> = {};
  for (const [service, { comment, rpcs }] of Object.entries(profiles)) {
    comments[service] = comment;
    for (const [rpc, { comment }] of Object.entries(rpcs))
      if (comment !== undefined) comments[`${service}.${rpc}`] = comment;
  }
  return comments;
}

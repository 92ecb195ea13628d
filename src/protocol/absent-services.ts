/** Refuses the calls of services that a vendor has and this server does not. */
import type { ConnectError } from "@connectrpc/connect";
import { callUnsupported } from "../errors.ts";
import type { ServiceProfile, ServiceProfiles } from "./service-profile.ts";

/**
 * Finds the refusal of a call of an absent service.
 *
 * @param path of an RPC ("/google.cloud.kms.v1.EkmService/ListEkmConnections") or of a REST call, without its query
 * @returns CALL_UNSUPPORTED; undefined for all other paths.
 */
export function findAbsentCall(path: string, profiles: ServiceProfiles): ConnectError | undefined {
  for (const { absent = {}, rpcs = {} } of Object.values(profiles))
    for (const [service, restPath] of Object.entries(absent)) {
      if (path.startsWith(`/${service}/`)) return refuseAbsent(path.slice(1), rpcs);
      if (restPath.test(path)) return refuseAbsent(service, rpcs);
    }
  return undefined;
}

function refuseAbsent(method: string, rpcs: NonNullable<ServiceProfile["rpcs"]>): ConnectError {
  const supported = Object.keys(rpcs).filter((name) => rpcs[name]?.comment !== undefined);
  return callUnsupported(method, method, supported);
}

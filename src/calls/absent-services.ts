/** Refuses calls to services that a vendor offers and this server does not. */
import type { ConnectError } from "@connectrpc/connect";
import { callUnsupported } from "../errors.ts";
import type { ServiceProfiles } from "./service-profile.ts";

/**
 * Returns the refusal of a call to an absent service.
 *
 * @param path of an RPC ("/google.cloud.kms.v1.EkmService/ListEkmConnections") or of a REST call, without its
 *   query
 * @returns CALL_UNSUPPORTED; undefined for all other paths
 */
export function findAbsentCall(path: string, profiles: ServiceProfiles): ConnectError | undefined {
  for (const { absent = {} } of Object.values(profiles))
    for (const [service, restPath] of Object.entries(absent)) {
      if (path.startsWith(`/${service}/`)) return callUnsupported(path.slice(1));
      if (restPath.test(path)) return callUnsupported(service);
    }
  return undefined;
}

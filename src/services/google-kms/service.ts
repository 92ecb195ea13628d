/** google.cloud.kms.v1.KeyManagementService and google.cloud.location.Locations: each group of calls is one file. */
import type { ServiceImplSpec } from "@connectrpc/connect";
import { KeyManagementService } from "#gen/google/cloud/kms/v1/service_pb.ts";
import { Locations } from "#gen/google/cloud/location/locations_pb.ts";
import { locationCalls } from "./locations.ts";
import { refuseOthers } from "./refuse-others.ts";
import { useCalls } from "./use.ts";

/**
 * Creates the services.
 *
 * The calls without an implementation are refused. A call that gets one also gets a comment in profiles.ts.
 */
export function openGoogleServices(): ServiceImplSpec[] {
  return [refuseOthers(KeyManagementService, { ...useCalls() }), refuseOthers(Locations, locationCalls())];
}

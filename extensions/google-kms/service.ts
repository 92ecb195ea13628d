/**
 * google.cloud.kms.v1.KeyManagementService and google.cloud.location.Locations, one file per group of calls.
 */
import type { ServiceImplSpec } from "@connectrpc/connect";
import { KeyManagementService } from "#gen/google/cloud/kms/v1/service_pb.ts";
import { Locations } from "#gen/google/cloud/location/locations_pb.ts";
import type { GoogleDeps } from "./calls.ts";
import { cryptoKeyCalls } from "./crypto-keys.ts";
import { importJobCalls } from "./import-jobs.ts";
import { keyRingCalls } from "./key-rings.ts";
import { locationCalls } from "./locations.ts";
import { publicKeyCalls } from "./public-keys.ts";
import { refuseOthers } from "./refuse-others.ts";
import { useCalls } from "./use.ts";
import { versionCalls } from "./versions.ts";

/**
 * Creates the services.
 *
 * Calls without an implementation are rejected. When you implement one, also add its comment in profiles.ts.
 */
export function openGoogleServices(deps: GoogleDeps): ServiceImplSpec[] {
  const calls = {
    ...keyRingCalls(deps),
    ...cryptoKeyCalls(deps),
    ...versionCalls(deps),
    ...publicKeyCalls(deps),
    ...useCalls(deps),
    ...importJobCalls(deps),
  };
  return [refuseOthers(KeyManagementService, calls), refuseOthers(Locations, locationCalls())];
}

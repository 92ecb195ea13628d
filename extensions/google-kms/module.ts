/**
 * google.cloud.kms.v1.KeyManagementService and google.cloud.location.Locations, one file per group of calls.
 */
import type { DescService } from "@bufbuild/protobuf";
import { createServiceImplSpec, type ServiceImpl, type ServiceImplSpec } from "@connectrpc/connect";
import { KeyManagementService } from "#gen/google/cloud/kms/v1/service_pb.ts";
import { Locations } from "#gen/google/cloud/location/locations_pb.ts";
import { callUnsupported } from "../../src/errors.ts";
import type { OpenServices } from "../../src/services/service-module.ts";
import type { GoogleDeps } from "./calls.ts";
import { cryptoKeyCalls } from "./crypto-keys.ts";
import { importJobCalls } from "./import-jobs.ts";
import { keyRingCalls } from "./key-rings.ts";
import { locationCalls } from "./locations.ts";
import { publicKeyCalls } from "./public-keys.ts";
import { createRingStore } from "./tables.ts";
import { useCalls } from "./use.ts";
import { versionCalls } from "./versions.ts";

export { examples } from "./examples.ts";

export const openServices: OpenServices = ({ keyDomain, store }) => ({
  services: openGoogleServices({ ...keyDomain.open(), rings: createRingStore(store) }),
});

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

/** Implements part of a service. All other calls fail with CALL_UNSUPPORTED. */
export function refuseOthers<Service extends DescService>(
  service: Service,
  supported: Partial<ServiceImpl<Service>>,
): ServiceImplSpec {
  const { methods } = service;
  const others = methods.filter(({ localName }) => !(localName in supported));
  const refusals = Object.fromEntries(
    others.map(({ localName, name, parent }) => [
      localName,
      () => {
        throw callUnsupported(`${parent.typeName}/${name}`);
      },
    ]),
  );
  // A handler that throws matches any handler type.
  return createServiceImplSpec(service, { ...supported, ...refusals } as ServiceImpl<Service>);
}

/** All calls of packages, from the descriptors that their protos were compiled to. */

import { createRegistry, type DescMethod, getOption, type Registry } from "@bufbuild/protobuf";
import { http } from "#gen/google/api/annotations_pb.ts";
import { file_google_rpc_error_details } from "#gen/google/rpc/error_details_pb.ts";
import { file_grpc_health_v1_health } from "#gen/grpc/health/v1/health_pb.ts";
import type { ServicePackage } from "../../services/registry.ts";

/** The packages whose calls are available. */
export type Packages = readonly Pick<ServicePackage, "files">[];

/** Every message and service. */
export function createCallRegistry(packages: Packages): Registry {
  return createRegistry(
    ...packages.flatMap(({ files }) => files),
    file_grpc_health_v1_health,
    file_google_rpc_error_details,
  );
}

/** Every call, in the order of the protos. */
export function listMethods(registry: Registry): DescMethod[] {
  return [...registry].flatMap((desc) => (desc.kind === "service" ? desc.methods : []));
}

/** "kms.KmsService/CreateKey". */
export function nameMethod(method: DescMethod): string {
  return `${method.parent.typeName}/${method.name}`;
}

/** "POST /api/kms/create-key"; undefined for a call that REST does not have. */
export function findRestPath(method: DescMethod): string | undefined {
  const { pattern } = getOption(method, http);
  if (pattern.case === undefined || pattern.case === "custom") return undefined;
  return `${pattern.case.toUpperCase()} ${pattern.value}`;
}

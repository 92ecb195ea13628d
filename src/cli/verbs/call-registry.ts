/** Finds all calls in the compiled descriptors of the service packages. */

import { createRegistry, type DescMethod, getOption, type Registry } from "@bufbuild/protobuf";
import { http } from "#gen/google/api/annotations_pb.ts";
import { file_google_rpc_error_details } from "#gen/google/rpc/error_details_pb.ts";
import { file_grpc_health_v1_health } from "#gen/grpc/health/v1/health_pb.ts";
import type { ServicePackage } from "../../services/registry.ts";

/** Creates a registry of all messages and services of these packages. */
export function createCallRegistry(packages: readonly Pick<ServicePackage, "files">[]): Registry {
  return createRegistry(
    ...packages.flatMap(({ files }) => files),
    file_grpc_health_v1_health,
    file_google_rpc_error_details,
  );
}

/** Lists all calls, in proto order. */
export function listMethods(registry: Registry): DescMethod[] {
  return [...registry].flatMap((desc) => (desc.kind === "service" ? desc.methods : []));
}

/** Formats a call's name: "kms.KmsService/CreateKey". */
export function nameMethod(method: DescMethod): string {
  return `${method.parent.typeName}/${method.name}`;
}

/** Formats a call's REST path: "POST /api/kms/create-key"; undefined for a call without one. */
export function findRestPath(method: DescMethod): string | undefined {
  const { pattern } = getOption(method, http);
  if (pattern.case === undefined || pattern.case === "custom") return undefined;
  return `${pattern.case.toUpperCase()} ${pattern.value}`;
}

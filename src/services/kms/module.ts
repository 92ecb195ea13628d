import { createServiceImplSpec } from "@connectrpc/connect";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { OpenServices } from "../service-module.ts";
import { openKeyDomain } from "./domain.ts";
import { kmsService } from "./service.ts";

export { examples } from "./examples.ts";

/** Opens the services of the package. */
export const openServices: OpenServices = (moduleDeps) => {
  const { deps, close } = openKeyDomain(moduleDeps);
  return { services: [createServiceImplSpec<typeof KmsService>(KmsService, kmsService(deps))], close };
};

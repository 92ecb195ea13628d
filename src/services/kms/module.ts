import { createServiceImplSpec } from "@connectrpc/connect";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { OpenServices } from "../service-module.ts";
import { kmsService } from "./service.ts";

export { examples } from "./examples.ts";

export const openServices: OpenServices = ({ keyDomain, ...deps }) => ({
  services: [
    createServiceImplSpec<typeof KmsService>(KmsService, kmsService({ ...deps, ...keyDomain.open() })),
  ],
});

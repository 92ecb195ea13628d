import { createServiceImplSpec } from "@connectrpc/connect";
import { AuthorizationService } from "#gen/oauth/authorization_service_pb.ts";
import type { OpenServices } from "../../src/services/service-module.ts";
import { authorizationService } from "./service.ts";

export { examples } from "./examples.ts";

export const openServices: OpenServices = (deps) => ({
  services: [
    createServiceImplSpec<typeof AuthorizationService>(AuthorizationService, authorizationService(deps)),
  ],
});

import { createServiceImplSpec } from "@connectrpc/connect";
import { IdentityLogService } from "#gen/pqc/identity_log_service_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import type { OpenServices } from "../service-module.ts";
import { identityLogService } from "./identity-log-service.ts";
import { pqcService } from "./pqc-service.ts";
import { HandshakeRecorder } from "./record-handshake.ts";
import { tokenService } from "./token-service.ts";

export { examples } from "./examples.ts";

export const openServices: OpenServices = (deps) => ({
  services: [
    createServiceImplSpec<typeof PqcService>(
      PqcService,
      pqcService({ ...deps, handshakes: new HandshakeRecorder() }),
    ),
    createServiceImplSpec<typeof TokenService>(TokenService, tokenService(deps)),
    createServiceImplSpec<typeof IdentityLogService>(IdentityLogService, identityLogService(deps)),
  ],
});

import { file_envoy_service_auth_v3_external_auth } from "#gen/envoy/service/auth/v3/external_auth_pb.ts";
import type { ServicePackage } from "../../src/services/registry.ts";
import { envoyProfiles } from "./profiles.ts";

export const envoyPackage: ServicePackage = {
  name: "envoy.auth",
  after: "nft",
  files: [file_envoy_service_auth_v3_external_auth],
  load: () => import("./module.ts"),
  profiles: envoyProfiles,
};

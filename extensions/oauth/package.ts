import { file_oauth_authorization_service } from "#gen/oauth/authorization_service_pb.ts";
import type { ServicePackage } from "../../src/services/registry.ts";
import { declaredReasons } from "./reasons.ts";

export const oauthPackage: ServicePackage = {
  name: "oauth",
  after: "nft",
  files: [file_oauth_authorization_service],
  load: () => import("./module.ts"),
  profiles: { "oauth.AuthorizationService": { restStyle: "oauth", reasons: declaredReasons } },
};

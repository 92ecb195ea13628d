/** Facts about Envoy's service that its protos do not state. */
import { Access } from "#gen/qsp/access_pb.ts";
import type { ServiceProfiles } from "../../src/calls/service-profile.ts";

/** By full service name. */
export const envoyProfiles: ServiceProfiles = {
  "envoy.service.auth.v3.Authorization": {
    restStyle: "own",
    comment: "Envoy's external authorization: its ext_authz filter calls this for each request.",
    rpcs: {
      Check: {
        // The token to check is in the message. Its bearer may ask about it, as with
        // pqc.TokenService/VerifyToken.
        access: Access.PUBLIC,
        scope: "",
        // The head of a request, which Envoy limits to 60 KiB by default, plus what Envoy's filters add.
        maxBytes: 256 * 1024,
        comment:
          "Allows or denies a request that Envoy received, based on its token and its route's requirements.",
      },
    },
  },
};

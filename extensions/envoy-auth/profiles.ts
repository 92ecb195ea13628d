/** Facts that Envoy's protos do not state about their service. */
import { Access } from "#gen/qsp/access_pb.ts";
import type { ServiceProfiles } from "../../src/calls/service-profile.ts";

/** By the full names of the services. */
export const envoyProfiles: ServiceProfiles = {
  "envoy.service.auth.v3.Authorization": {
    restStyle: "own",
    comment: "Envoy's external authorization: the filter ext_authz asks it about each request.",
    rpcs: {
      Check: {
        // The token to check is in the message. Its bearer may ask about it, as with pqc.TokenService/VerifyToken.
        access: Access.PUBLIC,
        scope: "",
        // The head of a request, which Envoy limits to 60 KiB by default, and what its filters know of it.
        maxBytes: 256 * 1024,
        comment:
          "Decides on a request that Envoy received, by the token that it carries and the demands of its route.",
      },
    },
  },
};

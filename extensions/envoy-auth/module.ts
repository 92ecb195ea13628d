import { createServiceImplSpec } from "@connectrpc/connect";
import { Authorization } from "#gen/envoy/service/auth/v3/external_auth_pb.ts";
import type { OpenServices } from "../../src/services/service-module.ts";
import { createCheck } from "./check.ts";
import { createHolders } from "./holders.ts";

export { examples } from "./examples.ts";

export const openServices: OpenServices = ({ issuer, accounts, issuerUrl, now }) => {
  const check = createCheck({ findTokenHolder: createHolders({ issuer, accounts, now }), issuerUrl });
  return {
    services: [
      createServiceImplSpec<typeof Authorization>(Authorization, {
        check: ({ attributes }) => check(attributes),
      }),
    ],
  };
};

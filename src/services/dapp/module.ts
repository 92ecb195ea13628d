import { createServiceImplSpec } from "@connectrpc/connect";
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import type { OpenServices } from "../service-module.ts";
import { dappService } from "./service.ts";
import { createDappStore } from "./store.ts";

export { examples } from "./examples.ts";

/** Opens the services of the package. */
export const openServices: OpenServices = (deps) => {
  const service = dappService({ ...deps, contracts: createDappStore(deps.store) });
  return { services: [createServiceImplSpec<typeof DappService>(DappService, service)] };
};

import { createServiceImplSpec } from "@connectrpc/connect";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import type { OpenServices } from "../service-module.ts";
import { defiService } from "./service.ts";
import { createDefiStore } from "./store.ts";

export { examples } from "./examples.ts";

export const openServices: OpenServices = (deps) => {
  const service = defiService({ ...deps, governance: createDefiStore(deps.store) });
  return { services: [createServiceImplSpec<typeof DefiService>(DefiService, service)] };
};

import { createServiceImplSpec } from "@connectrpc/connect";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { createOpenKeys } from "../../secrets/sealed-keys.ts";
import type { OpenServices } from "../service-module.ts";
import { blockchainService } from "./service.ts";
import { createChainStore } from "./store.ts";

export { examples } from "./examples.ts";

export const openServices: OpenServices = (deps) => {
  const openKeys = createOpenKeys(deps.store, deps.provider);
  const service = blockchainService({ ...deps, chain: createChainStore(deps.store), openKeys });
  return {
    services: [createServiceImplSpec<typeof BlockchainService>(BlockchainService, service)],
    close: async () => openKeys.close(),
  };
};

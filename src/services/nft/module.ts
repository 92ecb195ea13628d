import { createServiceImplSpec } from "@connectrpc/connect";
import { NftService } from "#gen/nft/nft_service_pb.ts";
import type { OpenServices } from "../service-module.ts";
import { nftService } from "./service.ts";
import { createNftStore } from "./store.ts";

export { examples } from "./examples.ts";

export const openServices: OpenServices = (deps) => {
  const service = nftService({ ...deps, tokens: createNftStore(deps.store) });
  return { services: [createServiceImplSpec<typeof NftService>(NftService, service)] };
};

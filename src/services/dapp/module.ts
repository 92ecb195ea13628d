import { createServiceImplSpec } from "@connectrpc/connect";
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { openTable } from "../../records/record-table.ts";
import type { OpenServices } from "../service-module.ts";
import { dappService } from "./service.ts";
import { contractTable } from "./tables.ts";

export { examples } from "./examples.ts";

export const openServices: OpenServices = (deps) => {
  const service = dappService({ ...deps, contracts: openTable(deps.store, contractTable) });
  return { services: [createServiceImplSpec<typeof DappService>(DappService, service)] };
};

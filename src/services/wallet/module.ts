import { createServiceImplSpec } from "@connectrpc/connect";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { openTable } from "../../records/record-table.ts";
import type { OpenServices } from "../service-module.ts";
import { walletService } from "./service.ts";
import { walletTable } from "./tables.ts";

export { examples } from "./examples.ts";

export const openServices: OpenServices = (deps) => {
  const service = walletService({ ...deps, wallets: openTable(deps.store, walletTable) });
  return { services: [createServiceImplSpec<typeof WalletService>(WalletService, service)] };
};

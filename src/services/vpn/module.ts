import { createServiceImplSpec } from "@connectrpc/connect";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import type { OpenServices } from "../service-module.ts";
import { openGateway } from "./gateway.ts";
import { vpnService } from "./service.ts";
import { createVpnStore } from "./store.ts";

export { examples } from "./examples.ts";

export const openServices: OpenServices = async (deps) => {
  const tunnels = createVpnStore(deps.store);
  const gateway = await openGateway(deps.store, deps.provider, tunnels);
  const service = vpnService({ ...deps, gateway, tunnels });
  return {
    services: [createServiceImplSpec<typeof VpnService>(VpnService, service)],
    close: () => gateway.close(),
  };
};

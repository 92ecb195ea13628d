import { createServiceImplSpec } from "@connectrpc/connect";
import { WireguardService } from "#gen/wireguard/wireguard_service_pb.ts";
import type { OpenServices } from "../../src/services/service-module.ts";
import { openGatewayIdentity } from "../../src/services/vpn/gateway.ts";
import { createVpnStore } from "../../src/services/vpn/store.ts";
import { createAgreements } from "./agreements.ts";
import { createGatewayLink } from "./gateway.ts";
import { wireguardService } from "./service.ts";
import { createPeerStore } from "./store.ts";

export { examples } from "./examples.ts";

export const openServices: OpenServices = async ({ store, provider, now }) => {
  const identityKey = await openGatewayIdentity(store, provider);
  const [gateway, agreements] = [createGatewayLink(), createAgreements()];
  const [tunnels, peers] = [createVpnStore(store), createPeerStore(store)];
  const service = wireguardService({
    store,
    provider,
    tunnels,
    peers,
    gateway,
    agreements,
    identityKey,
    now,
  });
  return {
    services: [createServiceImplSpec<typeof WireguardService>(WireguardService, service)],
    async close() {
      gateway.close();
      agreements.close();
      identityKey.erase();
    },
  };
};

/** wireguard.WireguardService: unpack, call, pack. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { WireguardService } from "#gen/wireguard/wireguard_service_pb.ts";
import { readPrincipal } from "../../src/identity/principal.ts";
import type { Stored } from "../../src/records/table-declaration.ts";
import { readList } from "../../src/services/fields.ts";
import { agree } from "./agree.ts";
import { confirm } from "./confirm.ts";
import type { WireguardDeps } from "./deps.ts";
import { getTunnel } from "./get-tunnel.ts";
import { registerKey } from "./register-key.ts";
import type { PeerRecord } from "./store.ts";
import { watchPeers } from "./watch-peers.ts";

export function wireguardService(deps: WireguardDeps): ServiceImpl<typeof WireguardService> {
  const { peers, gateway } = deps;
  return {
    registerKey: ({ tunnelId, wireguardPublicKey }, context) =>
      registerKey(deps, tunnelId, wireguardPublicKey, readPrincipal(context)),
    getTunnel: ({ tunnelId, nonce }, context) => getTunnel(deps, tunnelId, nonce, readPrincipal(context)),
    listPeers: async (fields, context) => {
      const { rows, ...page } = await readList(peers, fields, { principal: readPrincipal(context) });
      return { ...page, peers: rows.map(packPeer), gatewayConnected: gateway.find() !== undefined };
    },
    agree: ({ tunnelId, epoch, nonce, ephemeralPublicKey }, context) => {
      const { signal } = context;
      const fields = { tunnelId, epoch, nonce, ephemeralPublicKey };
      return agree(deps, { ...fields, principal: readPrincipal(context), signal });
    },
    confirm: async ({ tunnelId, epoch, confirmation: own }, context) => {
      const { signal } = context;
      const input = { tunnelId, epoch, confirmation: own, principal: readPrincipal(context), signal };
      return { confirmation: await confirm(deps, input) };
    },
    async *watchPeers({ wireguardPublicKey: wireguardKey, endpoint }, { signal }) {
      for await (const event of watchPeers(deps, { wireguardKey, endpoint }, signal)) yield { event };
    },
    reportKey: (report) => ({ awaited: gateway.report(report) }),
  };
}

function packPeer({ record: { tunnelId, wireguardKey, lastEpoch }, isIntact }: Stored<PeerRecord>) {
  return isIntact ? { tunnelId, wireguardPublicKey: wireguardKey, lastEpoch } : { tunnelId, damaged: true };
}

/** wireguard.WireguardService: unpack, call, pack. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { WireguardService } from "#gen/wireguard/wireguard_service_pb.ts";
import { readPrincipal } from "../../src/identity/principal.ts";
import type { Stored } from "../../src/records/table-declaration.ts";
import { readList } from "../../src/services/fields.ts";
import { agree, type Caller, confirm } from "./agree.ts";
import type { WireguardDeps } from "./deps.ts";
import type { PeerRecord } from "./store.ts";
import { getTunnel, registerKey } from "./tunnel-key.ts";
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
    agree: (request, context) => agree(deps, request, callerOf(context)),
    confirm: async (request, context) => ({
      confirmation: await confirm(deps, request, callerOf(context)),
    }),
    async *watchPeers({ wireguardPublicKey: wireguardKey, endpoint }, { signal }) {
      for await (const event of watchPeers(deps, { wireguardKey, endpoint }, signal)) yield { event };
    },
    reportKey: (report) => ({ awaited: gateway.report(report) }),
  };
}

function callerOf(context: HandlerContext): Caller {
  return { principal: readPrincipal(context), signal: context.signal };
}

function packPeer({ record: { tunnelId, wireguardKey, lastEpoch }, isIntact }: Stored<PeerRecord>) {
  return isIntact ? { tunnelId, wireguardPublicKey: wireguardKey, lastEpoch } : { tunnelId, damaged: true };
}

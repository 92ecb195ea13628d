/** This extension's rows of the access table test. */
import { createClient } from "@connectrpc/connect";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { WireguardService } from "#gen/wireguard/wireguard_service_pb.ts";
import { type Records, type Row, row } from "../../../test/access/rpc-rows.ts";
import { makePeer } from "../../../test/services/vpn-peer.ts";
import { type Agent, connectAgent, joinPeer, random32, startAgreement, type TestPeer } from "./agent.ts";

const { method } = WireguardService;

let agent: Agent | undefined;

/** Connects an agent, unless one is connected. Each call of WatchPeers replaces it. */
async function connectOnce({ admin }: Records): Promise<void> {
  if (agent !== undefined) return;
  const connected = await connectAgent(admin.transport);
  agent = connected;
  void connected.ended.then(() => {
    agent = undefined;
  });
}

/** Registers a peer of the owner. */
async function join(made: Records): Promise<TestPeer> {
  await connectOnce(made);
  return joinPeer(made.owner.transport);
}

/** A row about a tunnel that only its owner sees. */
const owned: typeof row = (method, request) => row(method, request, { hidden: "TUNNEL_NOT_FOUND" });

export const rows: readonly Row[] = [
  owned(method.registerKey, async (made) => {
    await connectOnce(made);
    const { publicKey } = makePeer();
    const { tunnelId } = await createClient(VpnService, made.owner.transport).registerPeer({ publicKey });
    return { tunnelId, wireguardPublicKey: random32() };
  }),
  owned(method.getTunnel, async (made) => ({ tunnelId: (await join(made)).tunnelId, nonce: random32() })),
  row(method.listPeers, () => ({})),
  owned(method.agree, async (made) => {
    const { tunnelId } = await join(made);
    return { tunnelId, epoch: Date.now(), nonce: random32(), ephemeralPublicKey: makePeer().publicKey };
  }),
  owned(method.confirm, async (made) => {
    const peer = await join(made);
    const client = createClient(WireguardService, made.owner.transport);
    const { tunnelId, epoch, peerConfirmation } = await startAgreement(client, peer);
    return { tunnelId, epoch, confirmation: peerConfirmation };
  }),
  row(method.watchPeers, () => ({ wireguardPublicKey: random32(), endpoint: "vpn.example.com:51820" })),
  row(method.reportKey, () => ({ tunnelId: "tunnel", epoch: 1, applied: true })),
];

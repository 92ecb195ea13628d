/** vpn.VpnService: unpack, call, pack. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError, type ServiceImpl } from "@connectrpc/connect";
import type { TunnelRequest, TunnelResponseSchema, VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { nameCode } from "../../calls/code-name.ts";
import { findReason } from "../../errors.ts";
import { readCaller, readPrincipal } from "../../identity/principal.ts";
import type { Principal } from "../../records/ownership.ts";
import type { Stored } from "../../records/table-declaration.ts";
import { checkSignatureLength, readGivenKey, readHealth, readList } from "../fields.ts";
import type { Gateway } from "./gateway.ts";
import { agreeOnKey, type Handshake } from "./handshake.ts";
import { findLive, receivePacket, sendPacket, throwSessionMissing } from "./packets.ts";
import { registerPeer, tunnelNotFound, type VpnDeps } from "./register-peer.ts";
import { readKeyForm } from "./session-keys.ts";
import { formatAddress, identityAlgorithm, kemAlgorithm, type Tunnel } from "./store.ts";

export function vpnService(deps: VpnDeps): ServiceImpl<typeof VpnService> {
  const { provider, store, tunnels, gateway } = deps;
  const { publicKey: kemKey } = gateway.kemKey;
  const { publicKey: identityKey } = gateway.identityKey;
  return {
    getGatewayInfo: () => ({
      kemPublicKey: kemKey.exportRaw(),
      kemPublicKeyPem: kemKey.toPem(),
      kemPublicKeySignature: gateway.kemKeySignature,
      kemAlgorithm,
      identityPublicKey: identityKey.exportRaw(),
      identityPublicKeyPem: identityKey.toPem(),
      identityAlgorithm,
    }),
    registerPeer: (req, context) => registerPeer(deps, req, readCaller(context)),
    handshake: async ({ tunnelId, ciphertext, keyForm }, context) => {
      const { signal } = context;
      const principal = readPrincipal(context);
      const input = { isRekey: false, keyForm: readKeyForm(keyForm), principal, signal };
      const agreed = await agreeOnKey(deps, tunnelId, ciphertext, input);
      return {
        ...packAgreement(agreed),
        gatewayIdentityPublicKey: identityKey.exportRaw(),
        gatewayIdentityPublicKeyPem: identityKey.toPem(),
      };
    },
    verifyHandshake: async ({ signature, transcript, ...fields }) => {
      const key =
        readGivenKey(provider, identityAlgorithm, fields, "gatewayIdentityPublicKey") ?? identityKey;
      checkSignatureLength(identityAlgorithm, signature);
      return { valid: await provider.verify(key, new TextEncoder().encode(transcript), signature) };
    },
    sendPacket: (req, context) => sendPacket(deps, req, readPrincipal(context)),
    receivePacket: (req, context) => receivePacket(deps, req, readPrincipal(context)),
    rekey: async ({ tunnelId, ciphertext }, context) => {
      const principal = readPrincipal(context);
      const { session } =
        findLive(deps, tunnelId, principal) ?? (await throwSessionMissing(deps, tunnelId, principal));
      const input = { isRekey: true, keyForm: session.keyForm, principal, signal: context.signal };
      const agreed = await agreeOnKey(deps, tunnelId, ciphertext, input);
      return { ...packAgreement(agreed), rekeyCount: agreed.tunnel.rekeyCount };
    },
    disconnect: async ({ tunnelId }, context) => {
      const principal = readPrincipal(context);
      const isRemoved = await store.write((transaction) => tunnels.remove(transaction, tunnelId, principal));
      if (!isRemoved) throw tunnelNotFound(tunnelId);
      gateway.forget(tunnelId);
      return { tunnelId, tunnelStatus: "REMOVED" };
    },
    listTunnels: async (fields, context) => {
      const principal = readPrincipal(context);
      const { rows, ...page } = await readList(tunnels, fields, { principal });
      return { ...page, tunnels: rows.map((tunnel) => packTunnel(gateway, tunnel)) };
    },
    getHealth: async () => {
      const health = await readHealth(store, async () => ({ activePeerCount: await tunnels.count() }));
      return { ...health, sessionCount: gateway.live.size };
    },
    async *tunnel(requests, context) {
      const principal = readPrincipal(context);
      for await (const request of requests) yield { result: await answerPacket(deps, request, principal) };
    },
  };
}

type TunnelResult = NonNullable<MessageInitShape<typeof TunnelResponseSchema>["result"]>;

/** A packet error is its reply; the stream continues. */
async function answerPacket(
  deps: VpnDeps,
  { packet }: TunnelRequest,
  principal: Principal,
): Promise<TunnelResult> {
  try {
    const status = "success";
    if (packet.case === "send")
      return { case: "sent", value: { status, ...(await sendPacket(deps, packet.value, principal)) } };
    if (packet.case === "receive")
      return { case: "received", value: { status, ...(await receivePacket(deps, packet.value, principal)) } };
  } catch (error) {
    const reason = error instanceof ConnectError ? findReason(error) : undefined;
    if (!(error instanceof ConnectError) || reason === undefined) throw error;
    return { case: "error", value: { code: nameCode(error.code), reason, message: error.rawMessage } };
  }
  throw new Error("the proto's rules ensure that each request has a packet");
}

function packAgreement({ tunnel, sharedSecretMatch, ...shown }: Handshake) {
  const { keyForm } = tunnel.session;
  return {
    ...shown,
    ...(sharedSecretMatch !== undefined && { sharedSecretMatch }),
    ...(keyForm !== "SHARED" && { keyForm }),
  };
}

function packTunnel({ live }: Gateway, { record: tunnel, isIntact }: Stored<Tunnel>) {
  if (!isIntact) return { tunnelId: tunnel.tunnelId, damaged: true };
  const { packetCount = 0, byteCount = 0, rekeyCount = 0 } = live.get(tunnel.tunnelId) ?? {};
  return {
    tunnelId: tunnel.tunnelId,
    peerName: tunnel.peerName,
    assignedIp: formatAddress(tunnel),
    sessionStatus: live.has(tunnel.tunnelId) ? "ESTABLISHED" : "REGISTERED",
    packetCount,
    byteCount,
    rekeyCount,
  };
}

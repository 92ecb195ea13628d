/** vpn.VpnService: unpack, call, pack. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError, type ServiceImpl } from "@connectrpc/connect";
import type {
  SendPacketResponseSchema,
  TunnelRequest,
  TunnelResponseSchema,
  VpnService,
} from "#gen/vpn/vpn_service_pb.ts";
import { codeNameOf, reasonOf } from "../../errors.ts";
import { onceOf, viewerOf } from "../../identity/principal.ts";
import { listSeenBy, type Viewer } from "../../records/ownership.ts";
import type { Marked } from "../../records/tag.ts";
import { checkSignatureLength, damageOf, readPage, readPublicKey } from "../fields.ts";
import type { Gateway } from "./gateway.ts";
import { agreeOnKey, type Handshake } from "./handshake.ts";
import { findLive, receivePacket, refuseWithoutSession, type SentPacket, sendPacket } from "./packets.ts";
import { refuseTunnel, registerPeer, type VpnParts } from "./register-peer.ts";
import { packetOverhead } from "./session.ts";
import { readKeyForm } from "./session-keys.ts";
import { addressOf, identityAlgorithm, kemAlgorithm, type Tunnel, tunnelList } from "./store.ts";

/** What the service needs. */
export interface VpnServiceParts extends VpnParts {}

/** Makes the implementation. */
export function vpnService(parts: VpnServiceParts): ServiceImpl<typeof VpnService> {
  const { provider, store, tunnels, gateway } = parts;
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
    registerPeer: (req, context) =>
      registerPeer(parts, { ...req, owner: viewerOf(context).userId, once: onceOf(context) }),
    handshake: async ({ tunnelId, ciphertext, keyForm }, context) => {
      const order = { isRekey: false, keyForm: readKeyForm(keyForm), viewer: viewerOf(context) };
      const agreed = await agreeOnKey(parts, tunnelId, ciphertext, order);
      return {
        ...packAgreement(agreed),
        gatewayIdentityPublicKey: identityKey.exportRaw(),
        gatewayIdentityPublicKeyPem: identityKey.toPem(),
      };
    },
    verifyHandshake: async ({ signature, transcript, ...fields }) => {
      const { gatewayIdentityPublicKey: publicKey, gatewayIdentityPublicKeyPem: publicKeyPem } = fields;
      const isOwn = publicKey.length === 0 && publicKeyPem === "";
      const key = isOwn
        ? identityKey
        : readPublicKey(provider, identityAlgorithm, { publicKey, publicKeyPem }, "gatewayIdentity");
      checkSignatureLength(identityAlgorithm, signature);
      return { valid: await provider.verify(key, new TextEncoder().encode(transcript), signature) };
    },
    sendPacket: async (req, context) => packSent(await sendPacket(parts, req, viewerOf(context))),
    receivePacket: async (req, context) => ({ data: await receivePacket(parts, req, viewerOf(context)) }),
    rekey: async ({ tunnelId, ciphertext }, context) => {
      const viewer = viewerOf(context);
      const { session } =
        findLive(parts, tunnelId, viewer) ?? (await refuseWithoutSession(parts, tunnelId, viewer));
      const order = { isRekey: true, keyForm: session.keyForm, viewer };
      const agreed = await agreeOnKey(parts, tunnelId, ciphertext, order);
      return { ...packAgreement(agreed), rekeyCount: agreed.tunnel.rekeyCount };
    },
    disconnect: async ({ tunnelId }, context) => {
      const viewer = viewerOf(context);
      const isRemoved = await store.write((transaction) => tunnels.remove(transaction, tunnelId, viewer));
      if (!isRemoved) throw refuseTunnel(tunnelId);
      gateway.forget(tunnelId);
      return { tunnelId, tunnelStatus: "REMOVED" };
    },
    listTunnels: async (fields, context) => {
      const viewer = viewerOf(context);
      const page = readPage(fields, listSeenBy(viewer, tunnelList));
      const { rows, nextPageToken } = await tunnels.list(page, viewer);
      const totalSize = await tunnels.count(viewer);
      return { tunnels: rows.map((tunnel) => packTunnel(gateway, tunnel)), nextPageToken, totalSize };
    },
    getHealth: async () => {
      const activePeerCount = await store.ifReachable(() => tunnels.count());
      const sessionCount = gateway.live.size;
      return activePeerCount === undefined
        ? { serviceStatus: "DOWN", sessionCount }
        : { serviceStatus: "UP", activePeerCount, sessionCount };
    },
    async *tunnel(requests, context) {
      const viewer = viewerOf(context);
      for await (const request of requests) yield { result: await answerPacket(parts, request, viewer) };
    },
  };
}

type TunnelResult = NonNullable<MessageInitShape<typeof TunnelResponseSchema>["result"]>;

/** What is wrong with one packet is its answer; the stream goes on. */
async function answerPacket(
  parts: VpnParts,
  { packet }: TunnelRequest,
  viewer: Viewer,
): Promise<TunnelResult> {
  try {
    if (packet.case === "send")
      return {
        case: "sent",
        value: { status: "success", ...packSent(await sendPacket(parts, packet.value, viewer)) },
      };
    if (packet.case === "receive")
      return {
        case: "received",
        value: { status: "success", data: await receivePacket(parts, packet.value, viewer) },
      };
  } catch (error) {
    const reason = error instanceof ConnectError ? reasonOf(error) : undefined;
    if (!(error instanceof ConnectError) || reason === undefined) throw error;
    return { case: "error", value: { code: codeNameOf(error), reason, message: error.rawMessage } };
  }
  throw new Error("the proto's rules see to it that each request has a packet");
}

function packAgreement({ tunnel, sharedSecretMatch, ...shown }: Handshake) {
  const { keyForm } = tunnel.session;
  return {
    ...shown,
    ...(sharedSecretMatch !== undefined && { sharedSecretMatch }),
    ...(keyForm !== "SHARED" && { keyForm }),
  };
}

function packSent({
  packet,
  plaintextBytes,
}: SentPacket): MessageInitShape<typeof SendPacketResponseSchema> & object {
  return { packet, plaintextBytes, ciphertextBytes: packet.length, gcmOverhead: packetOverhead };
}

function packTunnel({ live }: Gateway, tunnel: Marked<Tunnel>) {
  const { packetCount = 0, byteCount = 0, rekeyCount = 0 } = live.get(tunnel.tunnelId) ?? {};
  return {
    tunnelId: tunnel.tunnelId,
    peerName: tunnel.peerName,
    assignedIp: addressOf(tunnel),
    sessionStatus: live.has(tunnel.tunnelId) ? "ESTABLISHED" : "REGISTERED",
    packetCount,
    byteCount,
    rekeyCount,
    ...damageOf(tunnel),
  };
}

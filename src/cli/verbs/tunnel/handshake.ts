/** A handshake with the gateway that checks everything it receives (proto/vpn), and the packet session after it. */
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import {
  buildTranscript,
  checkHandshake,
  keyForm,
  makeTunnelEnd,
  packetOverhead,
  type TunnelEnd,
} from "../../../client/tunnel-end.ts";
import { wipe } from "../../../crypto/bytes.ts";
import type { CryptoProvider, PublicKey } from "../../../crypto/provider.ts";
import type { ApiClient } from "../../connection/api-client.ts";
import { distrustError } from "../../exit-codes.ts";

/** The gateway's public keys, as the peer stored them. */
export interface GatewayKeys {
  /** ML-KEM-1024. */
  readonly kem: PublicKey;
  /** ML-DSA-65. */
  readonly identity: PublicKey;
}

export interface HandshakeDeps {
  readonly provider: CryptoProvider;
  readonly server: ApiClient;
  readonly gateway: GatewayKeys;
  readonly tunnelId: string;
  /** The peer's own encapsulation key, which the transcript names. */
  readonly peerPublicKey: PublicKey;
}

/** Seals and opens the packets of a session. */
export interface PeerSession extends Pick<TunnelEnd, "seal"> {
  /** @throws CliError for a packet that is not authentic, or was opened before */
  open(packet: Uint8Array): Promise<Uint8Array>;
}

/**
 * Encapsulates to the gateway's key. Checks that the answer comes from the gateway, names this tunnel, peer and
 * ciphertext, and confirms the same keys, one per direction.
 *
 * The transcript does not name the gateway's encapsulation key: the caller must have seen that the identity signed it.
 *
 * @throws CliError if a check fails
 */
export async function shakeHands(deps: HandshakeDeps): Promise<PeerSession> {
  const { provider, server, gateway, tunnelId, peerPublicKey } = deps;
  const { ciphertext, sharedSecret } = await provider.encapsulate(gateway.kem);
  const publicKey = peerPublicKey.exportRaw();
  const transcript = await buildTranscript(tunnelId, ciphertext, publicKey);
  const end = await makeTunnelEnd(sharedSecret, transcript).finally(() => wipe(sharedSecret));
  const answer = await server.ask(VpnService.method.handshake, {
    tunnelId,
    ciphertext: Uint8Array.from(ciphertext),
    keyForm,
  });
  const identityPublicKey = gateway.identity.exportRaw();
  const findings = await checkHandshake({ ...answer, ciphertext }, end, {
    ...{ tunnelId, publicKey, identityPublicKey },
  });
  if (!findings.isOurTranscript)
    throw distrustError("the gateway's transcript does not match this handshake");
  if (!findings.isSigned)
    throw distrustError(
      "the gateway did not sign the handshake with its stored identity; a different server may be answering",
    );
  if (!findings.isConfirmed) throw distrustError("the gateway does not have the same session keys");
  return createSession(end);
}

/** Creates a packet session that opens each packet at most once. */
export function createSession(end: TunnelEnd): PeerSession {
  /** Replay set: the initialization vectors of opened packets. */
  const opened = new Set<string>();
  return {
    seal: end.seal,
    async open(packet) {
      if (packet.length < packetOverhead) throw distrustError("the gateway sent a packet that is too short");
      const data = await end.open(packet);
      if (data === undefined)
        throw distrustError("the gateway sent a packet that was not sealed with its session key");
      const vector = packet.subarray(0, 12).toHex();
      if (opened.has(vector)) throw distrustError("the gateway sent a packet twice");
      opened.add(vector);
      return data;
    },
  };
}

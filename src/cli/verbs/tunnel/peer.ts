/**
 * A peer of the gateway: its tunnel file, which pins the gateway's keys so that another gateway cannot impersonate it; a
 * handshake that checks everything it receives (proto/vpn); and the packet session after it.
 */
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import {
  buildTranscript,
  checkHandshake,
  kemKeyContext,
  keyForm,
  makeTunnelEnd,
  packetOverhead,
  type TunnelEnd,
} from "../../../client/tunnel-end.ts";
import { wipe } from "../../../crypto/bytes.ts";
import type { CryptoProvider, PublicKey } from "../../../crypto/provider.ts";
import type { ApiClient } from "../../connection/api-client.ts";
import { distrustError, usageError } from "../../exit-codes.ts";
import { areTexts, type StateKind } from "../../files/state.ts";
import { parsePublicKey, parseSecretKey } from "../../keys/read-keys.ts";

/** The option that all tunnel verbs share. */
export const tunnelOption = {
  tunnel: {
    value: "FILE",
    meaning: "File of the tunnel; default: tunnel.json",
    file: "updates",
    defaultPath: () => "tunnel.json",
  },
} as const;

/** The content of a tunnel file (mode 0600). It stores no session keys: each verb negotiates its own. */
interface TunnelState {
  readonly url: string;
  readonly tunnelId: string;
  readonly assignedIp: string;
  /** The peer's ML-KEM-1024 key, PKCS#8. */
  readonly secretKeyPem: string;
  /** The gateway's ML-KEM-1024 key when the tunnel was created. */
  readonly gatewayKemPem: string;
  /** The gateway's ML-DSA-65 key when the tunnel was created. */
  readonly gatewayIdentityPem: string;
}

export const tunnelKind: StateKind<TunnelState> = {
  noun: "tunnel",
  maker: "qsp tunnel up",
  isState: ({ url, tunnelId, secretKeyPem, gatewayKemPem, gatewayIdentityPem }) =>
    areTexts(url, tunnelId, secretKeyPem, gatewayKemPem, gatewayIdentityPem),
};

/**
 * Fetches the gateway's keys.
 *
 * @throws CliError if the identity key did not sign the encapsulation key
 */
export async function askGatewayKeys(
  provider: CryptoProvider,
  server: ApiClient,
): Promise<Pick<TunnelState, "gatewayKemPem" | "gatewayIdentityPem">> {
  const info = await server.ask(VpnService.method.getGatewayInfo, {});
  const state = { gatewayKemPem: info.kemPublicKeyPem, gatewayIdentityPem: info.identityPublicKeyPem };
  const { kem, identity } = toGatewayKeys(provider, state);
  const signature = info.kemPublicKeySignature;
  if (await provider.verify(identity, kem.exportRaw(), signature, { context: kemKeyContext })) return state;
  throw distrustError("the gateway's identity did not sign its encapsulation key");
}

/** Builds the handshake input from a tunnel file. */
export async function toHandshake(
  provider: CryptoProvider,
  server: ApiClient,
  state: TunnelState,
  path: string,
): Promise<HandshakeDeps> {
  const { publicKey } = await parseSecretKey(provider, state.secretKeyPem, path);
  return {
    provider,
    server,
    gateway: toGatewayKeys(provider, state),
    tunnelId: state.tunnelId,
    peerPublicKey: publicKey,
  };
}

function toGatewayKeys(
  provider: CryptoProvider,
  state: Pick<TunnelState, "gatewayKemPem" | "gatewayIdentityPem">,
): GatewayKeys {
  const kem = parsePublicKey(provider, state.gatewayKemPem, "the gateway's encapsulation key");
  const identity = parsePublicKey(provider, state.gatewayIdentityPem, "the gateway's identity");
  if (kem.algorithm === "ML-KEM-1024" && identity.algorithm === "ML-DSA-65") return { kem, identity };
  throw usageError(
    `the gateway has ${kem.algorithm} and ${identity.algorithm} keys; expected ML-KEM-1024 and ML-DSA-65`,
  );
}

/** The gateway's public keys, as the peer stored them. */
interface GatewayKeys {
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

/** The tunnel file: the peer's key and the pinned gateway keys, so that another gateway cannot impersonate it. */
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { kemKeyContext } from "../../../client/tunnel-end.ts";
import type { CryptoProvider } from "../../../crypto/provider.ts";
import type { ApiClient } from "../../connection/api-client.ts";
import { distrustError, usageError } from "../../exit-codes.ts";
import { areTexts, readState, type StateKind } from "../../files/state.ts";
import { parsePublicKey, parseSecretKey } from "../../keys/read-keys.ts";
import type { GatewayKeys, HandshakeDeps } from "./handshake.ts";

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
export interface TunnelState {
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

const kind: StateKind<TunnelState> = {
  noun: "tunnel",
  maker: "qsp tunnel up",
  isState: ({ url, tunnelId, secretKeyPem, gatewayKemPem, gatewayIdentityPem }) =>
    areTexts(url, tunnelId, secretKeyPem, gatewayKemPem, gatewayIdentityPem),
};

/**
 * Reads a tunnel file.
 *
 * @throws CliError, even for a tunnel of a different server
 */
export function readTunnel(path: string, url: string): TunnelState {
  return readState(path, url, kind);
}

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

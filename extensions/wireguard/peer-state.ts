/** The file of a peer: its registered key, and the keys of the gateway, which it pins. */
import { isIPv4 } from "node:net";
import { ConnectError } from "@connectrpc/connect";
import { type CliError, findReason, type Hints, toCliError, usageError } from "../../src/cli/exit-codes.ts";
import { readState, type StateKind } from "../../src/cli/files/state.ts";
import { parsePublicKey, parseSecretKey } from "../../src/cli/keys/read-keys.ts";
import type { CryptoProvider, PublicKey, SecretKey } from "../../src/crypto/provider.ts";

/** The content of a peer file (mode 0600). `qsp wireguard join` alone writes it. It has no pre-shared keys. */
export interface PeerState {
  readonly url: string;
  readonly tunnelId: string;
  /** Address of the peer in the tunnel. */
  readonly assignedIp: string;
  /** The peer's own WireGuard public key, base64. */
  readonly wireguardPublicKey: string;
  /** The peer's registered ML-KEM-1024 key, PKCS#8. */
  readonly secretKeyPem: string;
  /** The gateway's WireGuard public key when the peer joined, base64. */
  readonly gatewayWireguardPublicKey: string;
  /** Host and UDP port. */
  readonly gatewayEndpoint: string;
  /** Address of the gateway in the tunnel. */
  readonly gatewayAddress: string;
  /** The vpn gateway identity when the peer joined, ML-DSA-65. */
  readonly gatewayIdentityPem: string;
}

/** The forms of values that go into WireGuard's configuration; the file may be edited, and a server may lie. */
const endpointPattern = /^(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z]([0-9A-Za-z.-]*[0-9A-Za-z])?):[1-9][0-9]{0,4}$/;

/** Returns whether all values of a state have their form. */
export function isPeerState(state: Partial<Record<keyof PeerState, unknown>>): boolean {
  return (
    [state.url, state.tunnelId, state.secretKeyPem, state.gatewayIdentityPem].every(isText) &&
    [state.assignedIp, state.gatewayAddress].every((address) => isText(address) && isIPv4(address)) &&
    [state.wireguardPublicKey, state.gatewayWireguardPublicKey].every(isWireguardKey) &&
    isText(state.gatewayEndpoint) &&
    endpointPattern.test(state.gatewayEndpoint)
  );
}

const kind: StateKind<PeerState> = {
  noun: "WireGuard peer",
  maker: "qsp wireguard join",
  isState: isPeerState,
};

/**
 * Reads a peer file.
 *
 * @throws CliError, even for a peer of a different server
 */
export function readPeerState(path: string, url: string): PeerState {
  return readState(path, url, kind);
}

/** What to do about refusals: the tunnels of `qsp tunnel` have other files. */
export const hints: Hints = {
  TUNNEL_NOT_FOUND: "; remove the peer's file, and create a new one with qsp wireguard join",
};

/** Explains that a peer's tunnel does not exist. */
export function explainMissingTunnel(error: unknown): CliError | undefined {
  const isMissing = error instanceof ConnectError && findReason(error) === "TUNNEL_NOT_FOUND";
  return isMissing ? toCliError(error, "", hints) : undefined;
}

/** What a peer knows independently of what the server sends. */
export interface Peer {
  readonly tunnelId: string;
  /** 32 bytes. */
  readonly wireguardKey: Uint8Array;
  /** The registered ML-KEM-1024 key. The caller erases it. */
  readonly registeredKey: SecretKey;
  /** 32 bytes. */
  readonly gatewayWireguardKey: Uint8Array;
  /** The vpn gateway identity, ML-DSA-65. */
  readonly gatewayIdentity: PublicKey;
}

/** @throws CliError if a key in the file is invalid */
export async function openPeer(provider: CryptoProvider, state: PeerState, path: string): Promise<Peer> {
  const gatewayIdentity = parsePublicKey(provider, state.gatewayIdentityPem, `the identity in ${path}`);
  const registeredKey = await parseSecretKey(provider, state.secretKeyPem, path);
  if (registeredKey.algorithm !== "ML-KEM-1024" || gatewayIdentity.algorithm !== "ML-DSA-65")
    throw usageError(
      `${path} contains ${registeredKey.algorithm} and ${gatewayIdentity.algorithm} keys; expected ML-KEM-1024 and ML-DSA-65`,
    );
  return {
    tunnelId: state.tunnelId,
    wireguardKey: decodeWireguardKey(state.wireguardPublicKey),
    registeredKey,
    gatewayWireguardKey: decodeWireguardKey(state.gatewayWireguardPublicKey),
    gatewayIdentity,
  };
}

/** Returns whether a value is a WireGuard key as `wg pubkey` prints it: 32 bytes in base64. */
export function isWireguardKey(value: unknown): value is string {
  return typeof value === "string" && /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/.test(value);
}

/** Returns 32 bytes. */
export function decodeWireguardKey(text: string): Uint8Array {
  return Uint8Array.fromBase64(text);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

/** `qsp wireguard join` and `leave`, a peer's registration and its file, and `qsp wireguard status`. */
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { WireguardService } from "#gen/wireguard/wireguard_service_pb.ts";
import { unaryVerb } from "../../src/cli/call-verbs.ts";
import { inputFile } from "../../src/cli/command-line/options.ts";
import { type ApiClient, askPages } from "../../src/cli/connection/api-client.ts";
import { distrustError, exitCodes, usageError } from "../../src/cli/exit-codes.ts";
import { formatState } from "../../src/cli/files/state.ts";
import { parsePublicKey, readPublicKey, withProvider } from "../../src/cli/keys/read-keys.ts";
import { table } from "../../src/cli/output/output.ts";
import { declareVerb, type Verb, type VerbInput } from "../../src/cli/verb.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { fetchTunnel } from "./peer-agreement.ts";
import {
  decodeWireguardKey,
  explainMissingTunnel,
  isPeerState,
  isWireguardKey,
  openPeer,
  type PeerState,
  readPeerState,
} from "./peer-state.ts";
import { withCredentials } from "./tokens.ts";

const defaultPath = (): string => "peer.json";
const { listPeers } = WireguardService.method;

export const membershipVerbs: readonly Verb[] = [
  declareVerb({
    line: "wireguard join [NAME]",
    options: {
      "wireguard-public-key": {
        value: "KEY",
        meaning: "Public key of the WireGuard interface: wg show wg0 public-key",
      },
      out: {
        value: "FILE",
        meaning: "File for the peer; default: peer.json",
        file: "creates",
        isSecret: true,
        defaultPath,
      },
      "gateway-identity": inputFile(
        "Public key that the gateway must sign with, PEM or a JWK; default: trusts and stores the key that the gateway sends",
      ),
    },
    meaning:
      "Registers a peer with its own ML-KEM-1024 key and its WireGuard key, stores the keys of the gateway, and prints the\n" +
      "sections for WireGuard's configuration. Their pre-shared key is random, so nothing passes before qsp wireguard up.",
    example: "qsp wireguard join laptop --wireguard-public-key $(wg show wg0 public-key)",
    run: join,
  }),
  unaryVerb(VpnService.method.disconnect, {
    line: "wireguard leave",
    options: {
      state: { value: "FILE", meaning: "File of the peer; default: peer.json", file: "updates", defaultPath },
    },
    meaning:
      "Ends the peer's tunnel, and removes its file. The gateway's agent removes the peer from its interface.",
    ask: ({ files, server }) => ({ tunnelId: readPeerState(files.need("state"), server.url).tunnelId }),
    finish: (_, { files }) => rmSync(files.need("state")),
    say: ({ tunnelId, tunnelStatus }) => `${tunnelId} is ${tunnelStatus}.`,
  }),
].map((verb) => withCredentials({ ...verb, explain: explainMissingTunnel }));

export const statusVerb: Verb = withCredentials(
  declareVerb({
    line: "wireguard status",
    meaning:
      "Lists peers with the time of their last key, and says whether the gateway's agent is connected. Exit code 1 if\n" +
      "it is not.",
    async run({ output, server }) {
      const [answer, ...rest] = await askPages((pageToken) => server.ask(listPeers, { pageToken }));
      for (const { peers } of rest) for (const peer of peers) answer.peers.push(peer);
      answer.nextPageToken = "";
      const text = (): string => {
        const rows = answer.peers.map(({ tunnelId, wireguardPublicKey, lastEpoch, damaged }) =>
          damaged
            ? [tunnelId, "", "DAMAGED: changed outside the service"]
            : [tunnelId, wireguardPublicKey.toBase64(), lastEpoch === 0 ? "never" : formatEpoch(lastEpoch)],
        );
        const gateway = `The gateway's agent is ${answer.gatewayConnected ? "connected" : "not connected"}.`;
        return rows.length === 0
          ? `${gateway}\nThere are no peers.`
          : `${gateway}\n${table(["TUNNEL", "WIREGUARD KEY", "LAST KEY"], rows)}`;
      };
      return output.answer(listPeers.output, answer, text, answer.gatewayConnected);
    },
  }),
);

function join({ operands: [peerName = ""], files, options, output, server }: VerbInput): Promise<number> {
  const path = files.need("out");
  const wireguardPublicKey = options.need("wireguard-public-key");
  if (!isWireguardKey(wireguardPublicKey))
    throw usageError(
      "--wireguard-public-key is not a WireGuard key: 44 characters of base64, as wg show prints",
    );
  const identityFile = options.text("gateway-identity");
  return withProvider(async (provider) => {
    const { identityPublicKeyPem: gatewayIdentityPem } = await server.ask(
      VpnService.method.getGatewayInfo,
      {},
    );
    if (identityFile !== undefined) {
      const pinned = readPublicKey(provider, identityFile).toPem();
      if (parsePublicKey(provider, gatewayIdentityPem, "the gateway's identity").toPem() !== pinned)
        throw distrustError(`the identity of the gateway at ${server.url} differs from ${identityFile}`);
    }
    const { publicKey, secretKey } = await provider.generateKeyPair("ML-KEM-1024");
    const secretKeyPem = secretKey.toPem();
    secretKey.erase();
    const request = { peerName, publicKeyPem: publicKey.toPem() };
    const { tunnelId } = await server.ask(VpnService.method.registerPeer, request);
    try {
      const state = await register(server, provider, {
        ...{ url: server.url, tunnelId, wireguardPublicKey, secretKeyPem, gatewayIdentityPem },
      });
      files.write("out", formatState(state));
      const { secretKeyPem: _, ...shown } = state;
      output.report({ ...shown, file: path }, printSections(state, path));
      return exitCodes.done;
    } catch (error) {
      // Without a file, nobody could use or end the tunnel.
      await server.ask(VpnService.method.disconnect, { tunnelId }).catch(() => {});
      throw error;
    }
  });
}

type Registration = Pick<
  PeerState,
  "url" | "tunnelId" | "wireguardPublicKey" | "secretKeyPem" | "gatewayIdentityPem"
>;

/**
 * Registers the WireGuard key.
 *
 * @returns the state, whose gateway the identity has signed
 * @throws CliError
 */
async function register(server: ApiClient, provider: CryptoProvider, own: Registration): Promise<PeerState> {
  const { tunnelId, wireguardPublicKey } = own;
  const answer = await server.ask(WireguardService.method.registerKey, {
    tunnelId,
    wireguardPublicKey: Uint8Array.from(decodeWireguardKey(wireguardPublicKey)),
  });
  const { assignedIp, gatewayEndpoint, gatewayAddress } = answer;
  const gatewayWireguardPublicKey = answer.gatewayWireguardPublicKey.toBase64();
  const state = { ...own, assignedIp, gatewayWireguardPublicKey, gatewayEndpoint, gatewayAddress };
  // The sections go into files that wg-quick runs commands from.
  if (!isPeerState(state))
    throw distrustError("the gateway sent an address, endpoint or key in a wrong form");
  const peer = await openPeer(provider, state, "the new peer");
  try {
    const signed = await fetchTunnel({ server, provider, peer });
    const names = ["assignedIp", "gatewayEndpoint", "gatewayAddress"] as const;
    if (names.every((name) => signed[name] === state[name])) return state;
  } finally {
    peer.registeredKey.erase();
  }
  throw distrustError("the gateway's identity signed other addresses than the server sent");
}

function printSections(state: PeerState, path: string): string {
  return [
    "[Interface]",
    `Address = ${state.assignedIp}/32`,
    "",
    "[Peer]",
    `PublicKey = ${state.gatewayWireguardPublicKey}`,
    `PresharedKey = ${randomBytes(32).toString("base64")}`,
    `Endpoint = ${state.gatewayEndpoint}`,
    `AllowedIPs = ${state.gatewayAddress}/32`,
    "PersistentKeepalive = 5",
    "",
    `# ${path} has the peer's secret key. Next: qsp wireguard up --interface wg0 --state ${path}`,
  ].join("\n");
}

/** The server accepts any number up to the present. */
function formatEpoch(epochMs: number): string {
  const date = new Date(epochMs);
  return Number.isNaN(date.getTime()) ? String(epochMs) : date.toISOString();
}

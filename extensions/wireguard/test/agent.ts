/** A gateway's agent and peers for tests: real clients without a WireGuard interface. */
import { randomBytes } from "node:crypto";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import {
  type AgreeResponse,
  type GatewayPeer,
  type PeerKey,
  WireguardService,
} from "#gen/wireguard/wireguard_service_pb.ts";
import { type Peer as KemPeer, makePeer } from "../../../test/services/vpn-peer.ts";
import { failureOf } from "../../../test/support/refusal.ts";
import { type AgreedKeys, type Agreement, buildTranscript, deriveKeys } from "../agreement.ts";

export type WireguardClient = Client<typeof WireguardService>;

/** Returns random bytes as a nonce or a WireGuard key; the last byte of a key is below 128. */
export function random32(): Uint8Array<ArrayBuffer> {
  return Uint8Array.from([...randomBytes(31), 0]);
}

/** Bytes that are no WireGuard key: points of low order (cr.yp.to/ecdh.html, "validate") and other forms of a key. */
export const invalidKeys: readonly (readonly [string, Uint8Array<ArrayBuffer>])[] = Object.entries({
  "31 bytes": "01".repeat(31),
  "33 bytes": "01".repeat(33),
  zeros: "00".repeat(32),
  one: `01${"00".repeat(31)}`,
  "a point of order 8": "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
  "another point of order 8": "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
  "the prime minus 1": `ec${"ff".repeat(30)}7f`,
  "the prime": `ed${"ff".repeat(30)}7f`,
  "the prime plus 1": `ee${"ff".repeat(30)}7f`,
  "the base point plus the prime": `f6${"ff".repeat(30)}7f`,
  "the base point with bit 255": `09${"00".repeat(30)}80`,
}).map(([name, hex]) => [name, Uint8Array.fromHex(hex)]);

/** What the agent answers for a key; undefined for no report. */
export type Apply = (key: PeerKey) => boolean | undefined;

/** A connected agent. */
export type Agent = Awaited<ReturnType<typeof connectAgent>>;

export interface AgentOptions {
  readonly wireguardPublicKey?: Uint8Array<ArrayBuffer>;
  readonly apply?: Apply;
}

/** Connects an agent. Resolves when it has the first list of peers. */
export async function connectAgent(
  transport: Transport,
  { wireguardPublicKey = random32(), apply = () => true }: AgentOptions = {},
) {
  const client = createClient(WireguardService, transport);
  /** Known peers by tunnel ID. */
  const peers = new Map<string, GatewayPeer>();
  /** WireGuard keys of removed peers, in hexadecimal, the keys that were sent, and whether peers awaited the reports. */
  const [removed, keys, awaited]: [string[], PeerKey[], boolean[]] = [[], [], []];
  const leaving = new AbortController();
  const listed = Promise.withResolvers<void>();
  const follow = async (): Promise<void> => {
    const request = { wireguardPublicKey, endpoint: "vpn.example.com:51820" };
    for await (const { event } of client.watchPeers(request, { signal: leaving.signal })) {
      if (event.case === "peer") peers.set(event.value.tunnelId, event.value);
      if (event.case === "listed") listed.resolve();
      if (event.case === "removed") {
        peers.delete(event.value.tunnelId);
        removed.push(Buffer.from(event.value.wireguardPublicKey).toString("hex"));
      }
      if (event.case !== "key") continue;
      keys.push(event.value);
      const applied = apply(event.value);
      const { tunnelId, epoch } = event.value;
      if (applied !== undefined) awaited.push((await client.reportKey({ tunnelId, epoch, applied })).awaited);
    }
  };
  /** Resolves with the error that ended the stream. */
  const ended = failureOf(follow());
  await Promise.race([listed.promise, ended.then((error) => Promise.reject(error))]);
  return { wireguardPublicKey, peers, removed, keys, awaited, ended, close: () => leaving.abort() };
}

/** A peer with a tunnel and a WireGuard key. */
export interface TestPeer extends KemPeer {
  readonly tunnelId: string;
  readonly wireguardPublicKey: Uint8Array<ArrayBuffer>;
}

/** Registers a tunnel and its WireGuard key. */
export async function joinPeer(transport: Transport): Promise<TestPeer> {
  const peer = makePeer();
  const wireguardPublicKey = random32();
  const { tunnelId } = await createClient(VpnService, transport).registerPeer({ publicKey: peer.publicKey });
  await createClient(WireguardService, transport).registerKey({ tunnelId, wireguardPublicKey });
  return { ...peer, tunnelId, wireguardPublicKey };
}

/** An agreement that a peer has started. */
export type StartedAgreement = Awaited<ReturnType<typeof startAgreement>>;

/** Starts an agreement without verifying its signature, which agreement.test.ts does. */
export async function startAgreement(
  { agree }: Pick<WireguardClient, "agree">,
  peer: TestPeer,
  epoch = Date.now(),
) {
  const { tunnelId } = peer;
  const [ephemeral, nonce] = [makePeer(), random32()];
  const answer = await agree({ tunnelId, epoch, nonce, ephemeralPublicKey: ephemeral.publicKey });
  const keys = deriveAsPeer(peer, ephemeral, { epoch, nonce, ...answer });
  return {
    ...{ tunnelId, epoch, presharedKey: keys.presharedKey },
    peerConfirmation: Uint8Array.from(keys.peerConfirmation),
    gatewayConfirmation: Uint8Array.from(keys.gatewayConfirmation),
  };
}

/** Derives the keys of an agreement on the peer's side. */
export function deriveAsPeer(
  peer: TestPeer,
  ephemeral: KemPeer,
  agreed: Pick<Agreement, "epoch" | "nonce"> &
    Pick<AgreeResponse, "gatewayWireguardPublicKey" | "ephemeralCiphertext" | "registeredCiphertext">,
): AgreedKeys {
  const transcript = buildTranscript({
    ...{ ...agreed, tunnelId: peer.tunnelId },
    gatewayWireguardKey: agreed.gatewayWireguardPublicKey,
    peerWireguardKey: peer.wireguardPublicKey,
    ephemeralPublicKey: ephemeral.publicKey,
    registeredPublicKey: peer.publicKey,
  });
  return deriveKeys(
    transcript,
    ephemeral.decapsulate(agreed.ephemeralCiphertext),
    peer.decapsulate(agreed.registeredCiphertext),
  );
}

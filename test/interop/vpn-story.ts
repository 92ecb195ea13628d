/** What one client of the gateway lives through, from its first peer to the end of a tunnel. */
import { beforeAll } from "vitest";
import { type GetGatewayInfoResponse, VpnService } from "#gen/vpn/vpn_service_pb.ts";
import type { VpnClient } from "../services/devices-and-tunnels.ts";
import { makePeer, type Peer } from "../services/vpn-peer.ts";
import { createForeignClient } from "./foreign-client.ts";
import type { Teller } from "./stories.ts";
import { tellOfEnds, tellOfLists } from "./vpn-story-ends.ts";
import { tellOfPackets } from "./vpn-story-packets.ts";
import { tellOfRegistration } from "./vpn-story-peers.ts";
import { tellOfRefusals } from "./vpn-story-refusals.ts";
import { tellOfHandshakes, tellOfRekeys } from "./vpn-story-sessions.ts";

/** A tunnel of the story: what ListTunnels is to say of it, and what its peer knows. */
export interface KnownTunnel {
  readonly tunnelId: string;
  readonly peerName: string;
  readonly assignedIp: string;
  readonly publicKey: Uint8Array;
  /** The raw key of a pair that the gateway made. */
  readonly privateKey?: Uint8Array | undefined;
  /** Missing before a handshake. */
  sessionKey?: Uint8Array;
  packetCount: number;
  byteCount: number;
  rekeyCount: number;
}

/** What a service holds when a story begins: other stories may have been told to it. */
export interface Past {
  readonly tunnels: number;
  /** Of the home server. */
  readonly sessions: number;
}

/** What the chapters of a story share. */
export interface Stage {
  /** Makes each call to another server than the one before, if there are several. */
  readonly vpn: VpnClient;
  /**
   * Makes all calls to one server: a session key lives in the memory of the server that made the handshake and nowhere
   * else, so this is where the tunnels of the story have their sessions.
   */
  readonly home: VpnClient;
  /** Makes all calls to another server than home, if there are several. */
  readonly away: VpnClient;
  readonly driver: Teller["driver"];
  homeUrl(): string;
  past(): Past;
  /** What GetGatewayInfo said when the story began. */
  gateway(): GetGatewayInfoResponse;
  /** Peers whose secret keys never leave them. */
  readonly laptop: Peer;
  readonly phone: Peer;
  /** Keeps a tunnel under the name of its peer, for the tests that come after. */
  keep(tunnel: Pick<KnownTunnel, "tunnelId" | "peerName" | "assignedIp" | "publicKey" | "privateKey">): void;
  /** The tunnel that was kept under a name. */
  tunnel(peerName: string): KnownTunnel;
  /** Forgets a tunnel. */
  drop(peerName: string): void;
  /** All tunnels, in the order of their registration. */
  known(): KnownTunnel[];
}

/** Tells the story as consecutive tests. No other test uses the service at the same time. */
export function tellStory(teller: Teller): void {
  const stage = createStage(teller);
  tellOfRegistration(stage);
  tellOfHandshakes(stage);
  tellOfPackets(stage);
  tellOfRekeys(stage);
  tellOfRefusals(stage);
  tellOfLists(stage);
  tellOfEnds(stage);
}

function createStage({ driver, nextUrl }: Teller): Stage {
  const [home, away] = [{ url: "" }, { url: "" }];
  const clientOf = (url: () => string): VpnClient => createForeignClient(VpnService, driver, url);
  const stage = { vpn: clientOf(nextUrl), home: clientOf(() => home.url), away: clientOf(() => away.url) };
  let past: Past = { tunnels: 0, sessions: 0 };
  let gateway: GetGatewayInfoResponse | undefined;
  beforeAll(async () => {
    [home.url, away.url] = [nextUrl(), nextUrl()];
    const { activePeerCount = 0, sessionCount } = await stage.home.getHealth({});
    past = { tunnels: activePeerCount, sessions: sessionCount };
    gateway = await stage.home.getGatewayInfo({});
  });
  const kept = new Map<string, KnownTunnel>();
  return {
    ...stage,
    driver,
    homeUrl: () => home.url,
    past: () => past,
    gateway() {
      if (gateway === undefined) throw new Error("the story has not begun");
      return gateway;
    },
    laptop: makePeer(),
    phone: makePeer(),
    keep: (tunnel) =>
      void kept.set(tunnel.peerName, { ...tunnel, packetCount: 0, byteCount: 0, rekeyCount: 0 }),
    tunnel(peerName) {
      const found = kept.get(peerName);
      if (found === undefined) throw new Error(`no test before this one kept a tunnel of ${peerName}`);
      return found;
    },
    drop: (peerName) => void kept.delete(peerName),
    known: () => [...kept.values()],
  };
}

/** The session key of a tunnel that had a handshake. */
export function sessionKeyOf({ sessionKey, peerName }: KnownTunnel): Uint8Array {
  if (sessionKey === undefined) throw new Error(`no test before this one made a handshake with ${peerName}`);
  return sessionKey;
}

/** Counts a packet that the gateway sealed or opened. */
export function count(tunnel: KnownTunnel, { length }: Uint8Array): void {
  tunnel.packetCount += 1;
  tunnel.byteCount += length;
}

/** The chapters of a story that look back on it, and end a tunnel. */
import { describe, expect, it, vi } from "vitest";
import { refusal } from "../support/refusal.ts";
import type { KnownTunnel, Stage } from "./vpn-story.ts";

/** Milliseconds after which it is given up that another server learns that a tunnel is ended. */
const forgetMs = 100_000;

/** What ListTunnels says of a tunnel. */
function listed({ tunnelId, peerName, assignedIp, sessionKey, ...counts }: KnownTunnel) {
  const { packetCount, byteCount, rekeyCount } = counts;
  const sessionStatus = sessionKey === undefined ? "REGISTERED" : "ESTABLISHED";
  return { tunnelId, peerName, assignedIp, sessionStatus, packetCount, byteCount, rekeyCount };
}

export function tellOfLists({ vpn, home, past, known }: Stage): void {
  describe("ListTunnels", () => {
    it("lists all tunnels in the order of their registration, with what went through them here", async () => {
      const { tunnels, totalSize, nextPageToken } = await home.listTunnels({});
      expect(tunnels.slice(past().tunnels)).toMatchObject(known().map(listed));
      expect([totalSize, nextPageToken]).toEqual([past().tunnels + known().length, ""]);
      const addresses = new Set(tunnels.map(({ assignedIp }) => assignedIp));
      expect(addresses.size).toBe(totalSize);
    });

    it("lists them in pages, on any server", async () => {
      const before = past().tunnels;
      const pageSize = before + 3;
      const first = await vpn.listTunnels({ pageSize });
      const rest = await vpn.listTunnels({ pageSize, pageToken: first.nextPageToken });
      const names = [...first.tunnels.slice(before), ...rest.tunnels].map(({ peerName }) => peerName);
      expect(names).toEqual(["laptop – Zürich", "phone", "router", "printer"]);
      expect([first.tunnels.length, first.totalSize]).toEqual([pageSize, before + 4]);
      expect([rest.tunnels.length, rest.totalSize, rest.nextPageToken]).toEqual([1, before + 4, ""]);
    });
  });
}

export function tellOfEnds({ vpn, home, away, past, keep, tunnel, drop, known }: Stage): void {
  /** Counts of the home server, as they should be. */
  const expected = () => ({
    serviceStatus: "UP",
    activePeerCount: past().tunnels + known().length,
    sessionCount: past().sessions + known().filter(({ sessionKey }) => sessionKey).length,
  });

  it("GetHealth tells that the service is up, and how many peers and sessions it has", async () => {
    expect(await home.getHealth({})).toMatchObject(expected());
    expect([known().length, expected().sessionCount - past().sessions]).toEqual([4, 3]);
  });

  describe("Disconnect", () => {
    let ended: KnownTunnel;

    it("ends a tunnel, and its session at once", async () => {
      const { tunnelId } = tunnel("router");
      const answer = await home.disconnect({ tunnelId });
      expect(answer).toMatchObject({ status: "success", tunnelId, tunnelStatus: "REMOVED" });
      drop("router");
      expect(await home.getHealth({})).toMatchObject(expected());
    });

    it("ends a session also through a server that does not have it, soon", async () => {
      ended = tunnel("laptop – Zürich");
      await away.disconnect({ tunnelId: ended.tunnelId });
      drop("laptop – Zürich");
      const readCount = async () => (await home.getHealth({})).sessionCount;
      // Not expect.poll: in tests that run at once it loses its test after an await.
      await vi.waitFor(async () => expect(await readCount()).toBe(expected().sessionCount), forgetMs);
    });

    it("leaves a tunnel that is not there for any call", async () => {
      const { tunnelId } = ended;
      const calls = [
        home.handshake({ tunnelId }),
        home.rekey({ tunnelId }),
        home.sendPacket({ tunnelId, size: 1 }),
        home.receivePacket({ tunnelId, packet: new Uint8Array(29) }),
        vpn.disconnect({ tunnelId }),
      ];
      const notFound = { code: "NotFound", reason: "TUNNEL_NOT_FOUND" };
      expect(await Promise.all(calls.map(refusal))).toEqual(calls.map(() => notFound));
    });

    it("leaves the other tunnels their sessions", async () => {
      const { tunnels } = await home.listTunnels({});
      expect(tunnels.slice(past().tunnels)).toMatchObject(known().map(listed));
    });

    it("gives the lowest of their addresses to the next peer", async () => {
      const answer = await vpn.registerPeer({ peerName: "tablet" });
      expect(answer.assignedIp).toBe(ended.assignedIp);
      expect(answer.tunnelId).not.toBe(ended.tunnelId);
      keep({ ...answer, peerName: "tablet" });
      expect(await away.getHealth({})).toMatchObject({ activePeerCount: expected().activePeerCount });
    });
  });
}

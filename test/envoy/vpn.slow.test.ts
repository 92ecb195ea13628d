import { expect, it } from "vitest";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { request } from "../server/raw.ts";
import { describePostgres, freshDatabaseUrl } from "../support/postgres.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import {
  connectGrpc,
  connectHttp2,
  describeEdge,
  startBackend,
  startTestEdge,
  type TestEdge,
} from "./edge-tools.ts";

const data = new TextEncoder().encode("hello");

/** Two gateways on one database, behind Envoy. */
async function startTwo(): Promise<TestEdge> {
  const place = [["--database-url", await freshDatabaseUrl()], makeTemporaryDirectory()] as const;
  const first = await startBackend(undefined, ...place);
  const second = await startBackend(undefined, ...place);
  return startTestEdge({ backends: [first.authority, second.authority] });
}

/** The servers that answered calls whose ID starts with this prefix. */
function serversOf({ log }: TestEdge, prefix: string): Set<string | null> {
  return new Set(log.filter(({ requestId }) => requestId.startsWith(prefix)).map(({ upstream }) => upstream));
}

describeEdge("VPN calls through Envoy, in front of two gateways", () => {
  describePostgres("that share a database", () => {
    it("stay with the gateway that holds the tunnel, if they name it in tunnel-id", async () => {
      const edge = await startTwo();
      const vpn = connectGrpc(VpnService, edge);
      const tunnels = Array.from({ length: 16 }, async (_, index) => {
        const { tunnelId } = await vpn.registerPeer({ peerName: `peer ${index}` });
        const headers = { "tunnel-id": tunnelId };
        await vpn.handshake({ tunnelId }, { headers });
        for (let count = 0; count < 5; count++) {
          const named = { headers: { ...headers, "x-request-id": `tunnel-${index}-${count}` } };
          expect((await vpn.sendPacket({ tunnelId, data }, named)).plaintextBytes).toBe(data.length);
        }
        const rest = { ":path": "/api/vpn/send-packet", "content-type": "application/json" };
        const body = JSON.stringify({ tunnelId, data: "aGVsbG8=" });
        const last = { ...rest, ...headers, "x-request-id": `tunnel-${index}-rest` };
        expect((await request(connectHttp2(edge), last, body)).status).toBe(200);
        await edge.logOf(`tunnel-${index}-rest`);
        return serversOf(edge, `tunnel-${index}-`);
      });
      const servers = await Promise.all(tunnels);
      expect(servers.map(({ size }) => size)).toEqual(servers.map(() => 1));
      // Chance alone sends all 16 to the same one once in 32,768 runs.
      expect(new Set(servers.flatMap((set) => [...set])).size).toBe(2);
    });

    it("otherwise stay with one gateway by client address", async () => {
      const edge = await startTwo();
      const clients = Array.from({ length: 16 }, async (_, index) => {
        const vpn = connectGrpc(VpnService, edge, `127.0.0.${index + 1}`);
        const { tunnelId } = await vpn.registerPeer({ peerName: `peer ${index}` });
        await vpn.handshake({ tunnelId });
        for (let count = 0; count < 5; count++) {
          const named = { headers: { "x-request-id": `address-${index}-${count}` } };
          expect((await vpn.sendPacket({ tunnelId, data }, named)).plaintextBytes).toBe(data.length);
        }
        await edge.logOf(`address-${index}-4`);
        return serversOf(edge, `address-${index}-`);
      });
      const servers = await Promise.all(clients);
      expect(servers.map(({ size }) => size)).toEqual(servers.map(() => 1));
      expect(new Set(servers.flatMap((set) => [...set])).size).toBe(2);
    });
  });
});

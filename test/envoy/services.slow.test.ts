import { beforeAll, describe, expect, it } from "vitest";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { request } from "../server/raw.ts";
import { endAfterAll } from "../support/at-end.ts";
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
import { type Answer, startPlainBackend } from "./plain-backend.ts";

describeEdge("Envoy with services.yaml", () => {
  const atEnd = endAfterAll();
  let edge: TestEdge;
  beforeAll(async () => {
    const start = async (name: string) => (await startPlainBackend(answerWith(name), atEnd)).authority;
    const backends = {
      servers: [await start("servers")],
      keys: [await start("keys 1"), await start("keys 2")],
      gateways: [await start("gateways")],
    };
    edge = await startTestEdge({ configuration: "services.yaml", backends }, atEnd);
  }, 180_000);

  /** The server that answered, by address. */
  const ask = async (listener: string, path: string): Promise<string> => {
    const session = connectHttp2({ ...edge, url: edge.urls[listener] ?? "" });
    const answer = await request(session, { ":method": "POST", ":path": path });
    return answer.status === 200 ? answer.body.toString() : String(answer.status);
  };

  // configuration.test.ts has the routes of all calls.
  it.each([
    { path: "/google.cloud.kms.v1.KeyManagementService/AsymmetricSign", answerer: /^keys \d$/ },
    { path: "/v1/projects/p/locations/global/keyRings?keyRingId=r", answerer: /^keys \d$/ },
    { path: "/api/vpn/send-packet", answerer: /^gateways$/ },
    { path: "/grpc.health.v1.Health/List", answerer: /^servers$/ },
  ])("routes $path to the servers of its service", async ({ path, answerer }) => {
    expect(await ask("edge", path)).toMatch(answerer);
  });

  it("balances calls across all servers of a service", async () => {
    const session = connectHttp2(edge);
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => request(session, { ":method": "POST", ":path": "/api/kms/sign" })),
    );
    expect(new Set(answers.map(({ body }) => body.toString()))).toEqual(new Set(["keys 1", "keys 2"]));
  });

  describe("at the address of the key service", () => {
    it.each(["/kms.KmsService/Sign", "/v1/projects/p/locations/global/keyRings"])(
      "routes %s to it",
      async (path) => {
        expect(await ask("keys", path)).toMatch(/^keys \d$/);
      },
    );

    it.each(["/vpn.VpnService/SendPacket", "/api/nft/mint", "/"])("has nothing at %s", async (path) => {
      expect(await ask("keys", path)).toBe("404");
    });
  });
});

const answerWith =
  (name: string): Answer =>
  (stream) => {
    stream.respond({ ":status": 200 });
    stream.end(name);
  };

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

/** Lets 16 peers send packets. The packets of each peer must reach one gateway, but not all the same one. */
async function expectOneGatewayEach(edge: TestEdge, isNamed: boolean): Promise<void> {
  const peers = Array.from({ length: 16 }, async (_, index) => {
    // Without the tunnel's name, the address of its client counts.
    const vpn = connectGrpc(VpnService, edge, isNamed ? undefined : `127.0.0.${index + 1}`);
    const { tunnelId } = await vpn.registerPeer({ peerName: `peer ${index}` });
    const headers: Record<string, string> = isNamed ? { "tunnel-id": tunnelId } : {};
    await vpn.handshake({ tunnelId }, { headers });
    for (let count = 0; count < 5; count++) {
      const named = { headers: { ...headers, "x-request-id": `peer-${index}-${count}` } };
      expect((await vpn.sendPacket({ tunnelId, data }, named)).plaintextBytes).toBe(data.length);
    }
    const rest = { ":path": "/api/vpn/send-packet", "content-type": "application/json" };
    const last = { ...rest, ...headers, "x-request-id": `peer-${index}-rest` };
    const body = JSON.stringify({ tunnelId, data: "aGVsbG8=" });
    if (isNamed) await request(connectHttp2(edge), last, body);
    await edge.logOf(`peer-${index}-${isNamed ? "rest" : "4"}`);
    return serversOf(edge, `peer-${index}-`);
  });
  const servers = await Promise.all(peers);
  expect(servers.map(({ size }) => size)).toEqual(servers.map(() => 1));
  // Chance alone sends all 16 to the same one once in 32,768 runs.
  expect(new Set(servers.flatMap((set) => [...set])).size).toBe(2);
}

describeEdge("VPN calls through Envoy, in front of two gateways", () => {
  describePostgres("that share a database", () => {
    it("stay with the gateway that holds the tunnel, if they name it in tunnel-id", async () =>
      expectOneGatewayEach(await startTwo(), true));

    it("otherwise stay with one gateway by client address", async () =>
      expectOneGatewayEach(await startTwo(), false));
  });
});

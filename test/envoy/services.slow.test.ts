import { beforeAll, describe, expect, it } from "vitest";
import { request } from "../server/raw.ts";
import { endAfterAll } from "../support/at-end.ts";
import { connectHttp2, describeEdge, startTestEdge, type TestEdge } from "./edge-tools.ts";
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

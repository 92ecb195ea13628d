import type { OutgoingHttpHeaders } from "node:http2";
import { describe, expect, it } from "vitest";
import { request } from "../server/raw.ts";
import { connectHttp2, describeEdge, startTestEdge, type TestEdge } from "./edge-tools.ts";
import {
  type Answer,
  answerUnavailable,
  breakOff,
  type PlainBackend,
  refuseStream,
  startPlainBackend,
  tellHeaders,
} from "./plain-backend.ts";

const post = { ":method": "POST", ":path": "/api/kms/sign", "content-type": "application/json" };
const grpc = { ":method": "POST", "content-type": "application/grpc", te: "trailers" };

const safe: { what: string; headers: OutgoingHttpHeaders }[] = [
  { what: "a REST call by GET", headers: { ":path": "/api/kms/keys" } },
  { what: "a REST call by POST that changes nothing", headers: { ...post, ":path": "/api/grpc/verify" } },
  { what: "a REST call by QUERY", headers: { ...post, ":method": "QUERY", ":path": "/api/kms/verify" } },
  { what: "an RPC that changes nothing", headers: { ...grpc, ":path": "/kms.KmsService/ListKeys" } },
  {
    what: "a call with an idempotency key",
    headers: { ...post, ":path": "/api/kms/create-key", "idempotency-key": "1" },
  },
  { what: "a read of the gateways", headers: { ...grpc, ":path": "/vpn.VpnService/ListTunnels" } },
];
const unsafe: typeof safe = [
  { what: "a REST call that changes something", headers: post },
  { what: "the same call by POST", headers: { ...post, ":path": "/api/kms/verify" } },
  { what: "an RPC that changes something", headers: { ...grpc, ":path": "/kms.KmsService/Sign" } },
  { what: "a stream of the client", headers: { ...grpc, ":path": "/kms.KmsService/SignStream" } },
  {
    what: "an RPC that ignores its idempotency key",
    headers: { ...grpc, ":path": "/vpn.VpnService/Rekey", "idempotency-key": "1" },
  },
  { what: "a packet", headers: { ...grpc, ":path": "/vpn.VpnService/SendPacket" } },
];
const seen: { how: string; answer: Answer }[] = [
  { how: "breaks off", answer: breakOff },
  { how: "answers UNAVAILABLE", answer: answerUnavailable },
];

/** Two servers: whichever gets the first call does what the test says, and every other call is answered. */
async function failOnce(answer: Answer): Promise<{ edge: TestEdge; backends: PlainBackend[] }> {
  let isFirst = true;
  const answerOnce: Answer = (stream, headers) => {
    const chosen = isFirst ? answer : tellHeaders;
    isFirst = false;
    chosen(stream, headers);
  };
  const backends = await Promise.all([startPlainBackend(answerOnce), startPlainBackend(answerOnce)]);
  return { edge: await startTestEdge({ backends: backends.map(({ authority }) => authority) }), backends };
}

const countCalls = (backends: readonly PlainBackend[]): number[] => backends.map(({ calls }) => calls.length);

describeEdge("Envoy", () => {
  describe.each(seen)("when a server takes a call and $how", ({ answer }) => {
    it.each(safe)("asks another one for $what", async ({ headers }) => {
      const { edge, backends } = await failOnce(answer);
      const body = headers[":method"] === undefined ? undefined : "{}";
      expect((await request(connectHttp2(edge), headers, body)).status).toBe(200);
      expect(countCalls(backends)).toEqual([1, 1]);
    });

    it.each(unsafe)("asks nobody else for $what", async ({ headers }) => {
      const { edge, backends } = await failOnce(answer);
      const { status, headers: told } = await request(connectHttp2(edge), headers, "{}");
      expect([status, told["grpc-status"]]).toEqual("te" in headers ? [200, "14"] : [503, undefined]);
      expect(countCalls(backends).toSorted()).toEqual([0, 1]);
    });
  });

  it.each([...safe, ...unsafe])(
    "asks another server for $what that the first one has refused to look at",
    async (row) => {
      const { edge, backends } = await failOnce(refuseStream);
      const body = row.headers[":method"] === undefined ? undefined : "{}";
      expect((await request(connectHttp2(edge), row.headers, body)).status).toBe(200);
      expect(countCalls(backends)).toEqual([1, 1]);
    },
  );

  it("asks three times at most", async () => {
    const backend = await startPlainBackend(answerUnavailable);
    const edge = await startTestEdge({ backends: [backend.authority] });
    expect((await request(connectHttp2(edge), { ":path": "/api/kms/keys" })).status).toBe(503);
    expect(backend.calls.length).toBe(3);
  });

  it("takes from no client how often it is to ask", async () => {
    const { edge, backends } = await failOnce(answerUnavailable);
    const wishes = { "x-envoy-retry-on": "5xx,gateway-error", "x-envoy-max-retries": "9" };
    expect((await request(connectHttp2(edge), { ...post, ...wishes }, "{}")).status).toBe(503);
    expect(countCalls(backends).toSorted()).toEqual([0, 1]);
  });
});

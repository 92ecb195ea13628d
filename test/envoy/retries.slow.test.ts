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
const create = { ":path": "/api/kms/create-key" };
const rekey = { ":path": "/vpn.VpnService/Rekey" };

/** One call of each kind; configuration.test.ts has the kinds of all calls. */
const safe: { what: string; headers: OutgoingHttpHeaders }[] = [
  { what: "a REST call by GET", headers: { ":path": "/api/kms/keys" } },
  { what: "a REST call by QUERY", headers: { ...post, ":method": "QUERY", ":path": "/api/kms/verify" } },
  { what: "a read-only RPC", headers: { ...grpc, ":path": "/kms.KmsService/ListKeys" } },
  { what: "a call with an idempotency key", headers: { ...post, ...create, "idempotency-key": "1" } },
];
const unsafe: typeof safe = [
  { what: "a REST call with side effects", headers: post },
  { what: "a client stream", headers: { ...grpc, ":path": "/kms.KmsService/SignStream" } },
  { what: "an RPC that ignores its key", headers: { ...grpc, ...rekey, "idempotency-key": "1" } },
];
const seen: { how: string; answer: Answer }[] = [
  { how: "resets the stream", answer: breakOff },
  { how: "answers UNAVAILABLE", answer: answerUnavailable },
];

/** Two servers: whichever receives the first call behaves as the test requires; every other call is answered. */
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
  describe.each(seen)("when a server accepts a call and $how", ({ answer }) => {
    it.each(safe)("retries $what on a different server", async ({ headers }) => {
      const { edge, backends } = await failOnce(answer);
      const body = headers[":method"] === undefined ? undefined : "{}";
      expect((await request(connectHttp2(edge), headers, body)).status).toBe(200);
      expect(countCalls(backends)).toEqual([1, 1]);
    });

    it.each(unsafe)("does not retry $what", async ({ headers }) => {
      const { edge, backends } = await failOnce(answer);
      const { status, headers: answered } = await request(connectHttp2(edge), headers, "{}");
      expect([status, answered["grpc-status"]]).toEqual("te" in headers ? [200, "14"] : [503, undefined]);
      expect(countCalls(backends).toSorted()).toEqual([0, 1]);
    });
  });

  it.each([...safe, ...unsafe])(
    "retries $what on a different server if the first one has not processed it",
    async (row) => {
      const { edge, backends } = await failOnce(refuseStream);
      const body = row.headers[":method"] === undefined ? undefined : "{}";
      expect((await request(connectHttp2(edge), row.headers, body)).status).toBe(200);
      expect(countCalls(backends)).toEqual([1, 1]);
    },
  );

  it("makes three attempts at most", async () => {
    const backend = await startPlainBackend(answerUnavailable);
    const edge = await startTestEdge({ backends: [backend.authority] });
    expect((await request(connectHttp2(edge), { ":path": "/api/kms/keys" })).status).toBe(503);
    expect(backend.calls.length).toBe(3);
  });

  it("ignores retry headers from clients", async () => {
    const { edge, backends } = await failOnce(answerUnavailable);
    const wishes = { "x-envoy-retry-on": "5xx,gateway-error", "x-envoy-max-retries": "9" };
    expect((await request(connectHttp2(edge), { ...post, ...wishes }, "{}")).status).toBe(503);
    expect(countCalls(backends).toSorted()).toEqual([0, 1]);
  });
});

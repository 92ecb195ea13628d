import type { OutgoingHttpHeaders } from "node:http2";
import { beforeAll, describe, expect, it } from "vitest";
import { request } from "../server/raw.ts";
import { endAfterAll } from "../support/at-end.ts";
import {
  connectHttp2,
  describeEdge,
  eventually,
  flagsOf,
  startTestEdge,
  type TestEdge,
} from "./edge-tools.ts";
import {
  type Answer,
  answerUnavailable,
  breakOff,
  type PlainBackend,
  refuseStream,
  startPlainBackend,
  tellHeaders,
} from "./plain-backend.ts";

const signByGrpc = { ":method": "POST", ":path": "/kms.KmsService/Sign", "content-type": "application/grpc" };

describeEdge("a request that Envoy forwards", () => {
  const atEnd = endAfterAll();
  let edge: TestEdge;
  beforeAll(async () => {
    const backend = await startPlainBackend(tellHeaders, atEnd);
    edge = await startTestEdge({ backends: [backend.authority] }, atEnd);
  }, 180_000);

  /** The headers that the server received. */
  const send = async (headers: Record<string, string>): Promise<Record<string, string>> => {
    const answer = await request(connectHttp2(edge), { ":path": "/api/hello", ...headers });
    return JSON.parse(answer.body.toString());
  };

  it("keeps its ID", async () => {
    const id = "0f5ad7e2-3f0c-4bd6-8b36-2c4a2c1f6a55";
    expect((await send({ "x-request-id": id }))["x-request-id"]).toBe(id);
  });

  it("gets an ID if it has none, which the response contains", async () => {
    const answer = await request(connectHttp2(edge), { ":path": "/api/hello" });
    const id = answer.headers["x-request-id"];
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect(JSON.parse(answer.body.toString())["x-request-id"]).toBe(id);
  });

  it("carries the client's address after the addresses that the client claims", async () => {
    const address = expect.stringMatching(/^\d+\.\d+\.\d+\.\d+$/);
    expect((await send({}))["x-forwarded-for"]).toEqual(address);
    const forwarded = (await send({ "x-forwarded-for": "192.0.2.1" }))["x-forwarded-for"] ?? "";
    expect(forwarded.split(",")).toEqual(["192.0.2.1", address]);
  });

  it("carries no headers that control Envoy", async () => {
    const wishes = ["retry-on", "max-retries", "upstream-rq-timeout-ms", "internal"].map(
      (wish) => `x-envoy-${wish}`,
    );
    const received = await send(Object.fromEntries(wishes.map((name) => [name, "1"])));
    expect(wishes.filter((name) => name in received)).toEqual([]);
  });

  it("grows by less than the 1 KiB that the servers reserve for it", async () => {
    const countBytes = (headers: Record<string, string>): number =>
      Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
    const sent = {
      ":method": "GET",
      ":scheme": "https",
      ":authority": new URL(edge.url).host,
      ":path": "/api/hello",
    };
    expect(countBytes(await send({})) - countBytes(sent)).toBeLessThan(1024);
  });

  it("is logged without its query and its token", async () => {
    const headers = { "x-request-id": "logged", authorization: "Bearer s3cret", cookie: "s3cret" };
    await send({ ":path": "/api/kms/keys?pageToken=s3cret", ...headers });
    const line = await edge.logOf("logged");
    const [address, number] = [expect.stringMatching(/^127\.0\.0\.1:\d+$/), expect.any(Number)];
    expect(line).toMatchObject({
      ...{ method: "GET", path: "/api/kms/keys", protocol: "HTTP/2", status: 200, route: "read" },
      ...{ client: address, upstream: address, attempts: 1, flags: "-" },
      ...{ durationMs: number, bytesIn: 0, bytesOut: number, tlsGroup: "X25519MLKEM768" },
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    });
    expect(JSON.stringify(line)).not.toContain("s3cret");
  });

  it("is logged with its gRPC status", async () => {
    const headers = { ...signByGrpc, "x-request-id": "logged-grpc", "x-large": "x".repeat(20_000) };
    await request(connectHttp2(edge), headers, "");
    const expected = { grpcStatus: "RESOURCE_EXHAUSTED", route: "call" };
    expect(await edge.logOf("logged-grpc")).toMatchObject(expected);
  });
});

describeEdge("a request that no server can handle", () => {
  it("is answered in the servers' format", async () => {
    const backend = await startPlainBackend(tellHeaders);
    backend.setServing(false);
    const edge = await startTestEdge({ backends: [backend.authority], areWell: false });
    await eventually(async () => {
      expect(await flagsOf(edge, "servers", backend.authority)).toContain("failed_active_hc");
    });
    const session = connectHttp2(edge);
    const connect = { ":method": "POST", ":path": "/kms.KmsService/ListKeys" };
    for (const headers of [{ ":path": "/api/kms/keys" }, connect]) {
      const answer = await request(session, headers);
      expect([answer.status, answer.headers["content-type"]]).toEqual([503, "application/json"]);
      const [code, message] = ["UNAVAILABLE", "no healthy upstream"];
      expect(JSON.parse(answer.body.toString())).toEqual({ status: "error", code, message, details: [] });
    }
    const answer = await request(session, signByGrpc, "");
    expect([answer.status, answer.headers["grpc-status"]]).toEqual([200, "14"]);
  });
});

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

import { beforeAll, expect, it } from "vitest";
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
import { startPlainBackend, tellHeaders } from "./plain-backend.ts";

const grpc = { ":method": "POST", ":path": "/kms.KmsService/Sign", "content-type": "application/grpc" };

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
    const headers = { ...grpc, "x-request-id": "logged-grpc", "x-large": "x".repeat(20_000) };
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
    const answer = await request(session, grpc, "");
    expect([answer.status, answer.headers["grpc-status"]]).toEqual([200, "14"]);
  });
});

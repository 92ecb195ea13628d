/** Traces of the compiled program as an OpenTelemetry collector receives them, over both OTLP protocols. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { isMissing } from "../../../test/interop/tools.ts";
import { present } from "../../../test/services/answers.ts";
import { refusal } from "../../../test/support/refusal.ts";
import { startServer } from "../../../test/support/start-server.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { buildCollector, type Collector, readAttributes, startCollector } from "./collector.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const parentSpanId = "b7ad6b7169203331";
const traceparent = `00-${traceId}-${parentSpanId}-01`;
const secretText = "the text to sign must not be traced";

let program: string;

async function startTraced(
  protocol: "grpc" | "http/protobuf",
  { args = [], env = {} }: { args?: string[]; env?: Record<string, string> } = {},
) {
  const collector = await startCollector(program);
  const server = await startServer({
    dataDir: makeTemporaryDirectory(),
    args: ["--otlp-endpoint", collector.urls[protocol], "--otlp-protocol", protocol, ...args],
    env,
  });
  const kms = createClient(KmsService, createGrpcTransport({ baseUrl: server.url }));
  return { collector, server, kms };
}

/** A call's child spans, by name. */
function partsOf({ spans }: Collector, parent: string): string[] {
  return spans()
    .filter(({ parentSpanId }) => parentSpanId === parent)
    .map(({ name }) => name)
    .sort();
}

describe.skipIf(isMissing("go"))("an OpenTelemetry collector", { timeout: 120_000 }, () => {
  beforeAll(() => {
    program = buildCollector(makeTemporaryDirectory(afterAll));
  }, 600_000);

  it.each(["grpc", "http/protobuf"] as const)(
    "receives a call with its child spans in the caller's trace, over %s",
    async (protocol) => {
      const { collector, server, kms } = await startTraced(protocol);
      const { result } = await kms.createKey({ algorithm: "ML-DSA-65" });
      const keyId = present(result).keyId;
      // On shutdown, the server has two seconds to send queued spans, counted from the connection.
      await collector.find(({ name }) => name === "kms.KmsService/CreateKey");
      const data = new TextEncoder().encode(secretText);
      await kms.sign(
        { keyId, data },
        { headers: { traceparent, tracestate: "shop=a1", "x-request-id": "mine-1" } },
      );
      // Stopping the server flushes queued spans.
      expect(await server.stop()).toMatchObject({ code: 0 });
      const call = await collector.find(({ name }) => name === "kms.KmsService/Sign");
      expect(call).toMatchObject({ traceId, parentSpanId, kind: 2, traceState: "shop=a1" });
      expect(readAttributes(call.attributes)).toEqual({
        "rpc.system.name": "grpc",
        "rpc.method": "kms.KmsService/Sign",
        "rpc.status_code": "OK",
        "qsp.request_id": "mine-1",
      });
      // The first use of a key unseals it. A use begins again if the cache evicts the changed key meanwhile.
      const parts = new Set(partsOf(collector, call.spanId));
      expect(parts).toEqual(new Set(["crypto import", "crypto sign", "store commit"]));
      const sign = await collector.find(({ name }) => name === "crypto sign");
      expect(readAttributes(sign.attributes)).toEqual({
        "qsp.crypto.operation": "sign",
        "qsp.crypto.algorithm": "ML-DSA-65",
      });
      expect(sign.traceId).toBe(traceId);
      expect(sign.events?.map(({ name }) => name)).toEqual(["began"]);
      const all = JSON.stringify(collector.batches);
      expect(all).not.toContain(secretText);
      expect(all).not.toContain(keyId);
    },
  );

  it("receives failed calls, and calls that are refused before they run, which are no server errors", async () => {
    const { collector, server } = await startTraced("grpc", { args: ["--auth", "token"] });
    const tokens = createClient(TokenService, createGrpcTransport({ baseUrl: server.url }));
    const login = tokens.issueToken({ username: "nobody", password: "wrong" });
    expect((await refusal(login)).reason).toBe("LOGIN_FAILED");
    expect((await fetch(`${server.url}/api/kms/key/k`, { headers: { traceparent } })).status).toBe(401);
    const own = await collector.find(({ name }) => name === "pqc.TokenService/IssueToken");
    const inTrace = await collector.find(({ name }) => name === "kms.KmsService/GetKey");
    await server.stop();
    const failure = { "rpc.system.name": "grpc", "error.type": "LOGIN_FAILED" };
    expect(readAttributes(own.attributes)).toMatchObject(failure);
    expect([own.status?.code ?? 0, own.parentSpanId ?? ""]).toEqual([0, ""]);
    expect(readAttributes(inTrace.attributes)).toMatchObject({
      ...{ "rpc.system.name": "rest", "rpc.status_code": "UNAUTHENTICATED", "error.type": "TOKEN_MISSING" },
    });
    expect(inTrace).toMatchObject({ traceId, parentSpanId });
  });

  it("is found through the standard OpenTelemetry variables, which also name the service", async () => {
    const collector = await startCollector(program);
    const server = await startServer({
      dataDir: makeTemporaryDirectory(),
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.urls.grpc,
        OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
        OTEL_SERVICE_NAME: "keys of the shop",
        OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
      },
    });
    await fetch(`${server.url}/api/hello`);
    await collector.find(({ name }) => name.endsWith("/Hello"));
    await server.stop();
    expect(readAttributes(collector.batches[0]?.resourceSpans[0]?.resource.attributes ?? [])).toMatchObject({
      "service.name": "keys of the shop",
      "deployment.environment.name": "test",
    });
  });
});

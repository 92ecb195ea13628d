import { type Client, createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { beforeAll, describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { run } from "../interop/tools.ts";
import { envelope, request } from "../server/raw.ts";
import { present } from "../services/answers.ts";
import { verifiesOutside } from "../services/node-crypto.ts";
import { endAfterAll } from "../support/at-end.ts";
import { refusal } from "../support/refusal.ts";
import type { RunningServer } from "../support/start-server.ts";
import { streamOf } from "../support/streams.ts";
import {
  connectGrpc,
  connectHttp2,
  describeEdge,
  startBackend,
  startTestEdge,
  type TestEdge,
} from "./edge-tools.ts";

const data = new TextEncoder().encode("hello");
const allowedOrigin = "https://app.example.com";

describeEdge("through Envoy", () => {
  const atEnd = endAfterAll();
  let server: RunningServer;
  let edge: TestEdge;
  beforeAll(async () => {
    server = await startBackend(atEnd, [
      ...["--trusted-proxies", "127.0.0.1", "--cors-origins", allowedOrigin],
    ]);
    edge = await startTestEdge({ backends: [server.authority] }, atEnd);
  }, 180_000);

  const transports: Record<string, (baseUrl: string, nodeOptions: { ca: Buffer }) => Transport> = {
    gRPC: (baseUrl, nodeOptions) => createGrpcTransport({ baseUrl, nodeOptions }),
    "gRPC-Web over HTTP/1.1": (baseUrl, nodeOptions) =>
      createGrpcWebTransport({ baseUrl, nodeOptions, httpVersion: "1.1" }),
    "gRPC-Web over HTTP/2": (baseUrl, nodeOptions) =>
      createGrpcWebTransport({ baseUrl, nodeOptions, httpVersion: "2" }),
    "Connect over HTTP/1.1": (baseUrl, nodeOptions) =>
      createConnectTransport({ baseUrl, nodeOptions, httpVersion: "1.1" }),
    "Connect over HTTP/2": (baseUrl, nodeOptions) =>
      createConnectTransport({ baseUrl, nodeOptions, httpVersion: "2" }),
    "Connect with GET": (baseUrl, nodeOptions) =>
      createConnectTransport({ baseUrl, nodeOptions, httpVersion: "1.1", useHttpGet: true }),
  };

  it.each([
    { ecdhCurve: "X25519MLKEM768", group: "X25519MLKEM768", hybrid: true },
    { ecdhCurve: "P-384", group: "secp384r1", hybrid: false },
  ])("reports what Envoy knows of a client's connection, whatever the client sends: $group", async (row) => {
    const { ecdhCurve, ...agreed } = row;
    const session = connectHttp2(edge, { ecdhCurve });
    const headers = { "x-forwarded-proto": "http", "x-tls-group": "x448", "x-tls-version": "TLSv1.2" };
    const { body } = await request(session, { ":path": "/api/grpc/connection", ...headers });
    expect(JSON.parse(body.toString())).toEqual({
      status: "success",
      tls: true,
      version: "TLS 1.3",
      ...agreed,
      cipherSuite: expect.stringMatching(/^TLS_AES_\d+_GCM_SHA\d+$/),
      offeredGroups: [],
      offeredSignatureAlgorithms: [],
      terminatedBy: "proxy",
    });
  });

  describe.each(Object.entries(transports))("%s", (_name, create) => {
    const connect = <S extends typeof PqcService | typeof KmsService>(service: S): Client<S> =>
      createClient(service, create(edge.url, { ca: edge.ca }));

    it("signs and verifies", async () => {
      const pqc = connect(PqcService);
      const { signature, publicKey, publicKeyPem } = await pqc.signData({ data });
      expect(verifiesOutside(publicKeyPem, data, signature)).toBe(true);
      expect((await pqc.verifySignature({ data, signature, publicKey })).valid).toBe(true);
    });

    it("passes a refusal through unchanged", async () => {
      const call = connect(KmsService).getKey({ keyId: "key-of-nobody" });
      expect(await refusal(call)).toEqual({ code: "NotFound", reason: "KEY_NOT_FOUND" });
    });

    it("passes server-stream messages through without delay", async () => {
      const kms = connect(KmsService);
      const { keyId = "" } = (await kms.createKey({ alias: "watched" })).result ?? {};
      const ending = new AbortController();
      const stream = kms.watchAuditLog({ keyId, afterSequence: 0 }, { signal: ending.signal });
      const answers = stream[Symbol.asyncIterator]();
      const next = async () => (await answers.next()).value?.entry?.operation;
      const first = await next();
      await kms.sign({ keyId, data });
      expect([first, await next()]).toEqual(["CREATE", "SIGN"]);
      ending.abort();
    });
  });

  it("carries a client stream", async () => {
    const kms = connectGrpc(KmsService, edge);
    const { result: key } = await kms.createKey({ alias: "streamed" });
    const chunk = new Uint8Array(100_000).fill(1);
    const parts = Array.from({ length: 10 }, () => ({ part: { case: "chunk" as const, value: chunk } }));
    const header = { part: { case: "header" as const, value: { keyId: key?.keyId ?? "" } } };
    const { result } = await kms.signStream(
      streamOf<typeof header | (typeof parts)[number]>(header, ...parts),
    );
    const message = new Uint8Array(1_000_000).fill(1);
    expect(verifiesOutside(key?.publicKeyPem ?? "", message, present(result).signature)).toBe(true);
  });

  it("carries a bidirectional stream, answer by answer", async () => {
    const vpn = connectGrpc(VpnService, edge);
    const { tunnelId } = await vpn.registerPeer({ peerName: "ada" });
    await vpn.handshake({ tunnelId });
    const answers: string[] = [];
    let answered = Promise.withResolvers<void>();
    const packets = async function* () {
      for (let count = 0; count < 3; count++) {
        yield { packet: { case: "send" as const, value: { tunnelId, data } } };
        // The next request waits for the answer: nothing may buffer an answer until the stream ends.
        await answered.promise;
        answered = Promise.withResolvers();
      }
    };
    for await (const { result } of vpn.tunnel(packets())) {
      answers.push(result.case ?? "");
      answered.resolve();
    }
    expect(answers).toEqual(["sent", "sent", "sent"]);
  });

  it("answers grpcurl, which uses reflection", async () => {
    const authority = new URL(edge.url).host;
    const list = await run("grpcurl", ["-cacert", edge.caFile, authority, "list"]);
    expect(list.stdout.split("\n")).toContain("kms.KmsService");
    const call = await run("grpcurl", ["-cacert", edge.caFile, authority, "pqc.TokenService/Hello"]);
    expect(JSON.parse(call.stdout)).toMatchObject({ status: "success" });
  });

  describe.each(["--http1.1", "--http2"])("curl %s", (version) => {
    const json = ["--header", "content-type: application/json"];
    const curl = async (path: string, ...flags: readonly string[]): Promise<string> => {
      const all = ["--silent", version, "--cacert", edge.caFile, ...flags, `${edge.url}${path}`];
      return (await run("curl", all)).stdout;
    };
    const sign = async () =>
      JSON.parse(await curl("/api/grpc/sign", ...json, "--data", '{"data":"aGVsbG8="}'));

    it("gets answers and refusals of REST calls", async () => {
      expect(await sign()).toMatchObject({ status: "success", algorithm: "ML-DSA-65" });
      const refused = JSON.parse(await curl("/api/kms/key/key-of-nobody"));
      expect(refused).toMatchObject({ status: "error", code: "NOT_FOUND" });
    });

    // Envoy accepts QUERY over HTTP/1.1 since version 1.40, and over HTTP/2 since earlier.
    it("may send QUERY", async () => {
      const { signature, publicKey } = await sign();
      const question = JSON.stringify({ data: "aGVsbG8=", signature, publicKey });
      const query = [...json, "--include", "--request", "QUERY", "--data", question];
      for (const chunks of [[], ["--header", "transfer-encoding: chunked"]]) {
        if (version === "--http2" && chunks.length > 0) continue;
        const answer = await curl("/api/grpc/verify", ...query, ...chunks);
        expect(answer).toMatch(/^HTTP\/\S+ 200/);
        expect(answer).toMatch(/^cache-control: no-store\r$/m);
        expect(answer).toContain('"valid":true');
      }
    });
  });

  it("carries a 1 MB body", async () => {
    const body = JSON.stringify({ data: Buffer.alloc(750_000).toString("base64") });
    const headers = { ":path": "/api/grpc/sign", "content-type": "application/json" };
    expect((await request(connectHttp2(edge), headers, body)).status).toBe(200);
  });

  it("carries a token of more than 4,500 characters to the call that requires it", async () => {
    const session = connectHttp2(edge);
    const json = { "content-type": "application/json" };
    const body = JSON.stringify({ username: "ada" });
    const issued = await request(session, { ":path": "/api/auth/token", ...json }, body);
    const { token } = JSON.parse(issued.body.toString());
    expect(token.length).toBeGreaterThan(4500);
    const headers = { ":path": "/api/secure", authorization: `Bearer ${token}` };
    expect((await request(session, headers)).status).toBe(200);
  });

  it("keeps %2F in a path variable unchanged", async () => {
    const answer = await request(connectHttp2(edge), { ":path": "/api/kms/key/a%2Fb" });
    expect(JSON.parse(answer.body.toString())).toMatchObject({
      code: "NOT_FOUND",
      details: [{ reason: "KEY_NOT_FOUND", metadata: { keyId: "a/b" } }],
    });
  });

  it.each([
    ["REST", "/api/grpc/sign", "application/json", '{"data":"aGVsbG8="}'],
    ["Connect", "/pqc.PqcService/GetAlgorithmInfo", "application/json", "{}"],
    ["gRPC-Web", "/pqc.PqcService/GetAlgorithmInfo", "application/grpc-web+proto", envelope("")],
  ])("lets only pages of allowed origins call, also after a preflight: %s", async (...row) => {
    const [, path, type, body] = row;
    const session = connectHttp2(edge);
    const asking = {
      "access-control-request-method": "POST",
      "access-control-request-headers": "content-type",
    };
    for (const origin of [allowedOrigin, "https://elsewhere.example.com"]) {
      const answers = await Promise.all([
        request(session, { ":method": "OPTIONS", ":path": path, origin, ...asking }),
        request(session, { ":method": "POST", ":path": path, origin, "content-type": type }, body),
      ]);
      const allowed = origin === allowedOrigin ? origin : undefined;
      expect(answers.map(({ headers }) => headers["access-control-allow-origin"])).toEqual([
        allowed,
        allowed,
      ]);
    }
  });

  it("does not expose /metrics through Envoy", async () => {
    expect((await fetch(`${server.url}/metrics`)).status).toBe(200);
    expect((await request(connectHttp2(edge), { ":path": "/metrics" })).status).toBe(404);
  });

  it("normalizes dots and double slashes in paths", async () => {
    const answer = await request(connectHttp2(edge), { ":path": "/api//nothing/../hello" });
    expect(answer.status).toBe(200);
  });

  it("rejects header names with underscores", async () => {
    const call = request(connectHttp2(edge), { ":path": "/api/hello", x_forwarded_for: "192.0.2.1" });
    await expect(call).rejects.toThrow();
  });
}, ["curl", "grpcurl"]);

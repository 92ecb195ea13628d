/** Cost of signing with one-time keys, of verification, and of the protocols. */
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { SignDataRequestSchema, VerifySignatureRequestSchema } from "#gen/pqc/pqc_service_pb.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { type Child, compare, grpc, json, load, rawProvider, toMiB } from "./tools.ts";

export async function measurePqc(app: Child, grpcJs: Child): Promise<void> {
  const rest = await app.ask("report");
  const signRequest = grpc(
    "/pqc.PqcService/SignData",
    toBinary(SignDataRequestSchema, create(SignDataRequestSchema, { data: Buffer.alloc(32, 1) })),
  );
  await compare(
    "SignData over gRPC against the provider's key pair and signature",
    "reach 0.75",
    async () => {
      app.send("reset");
      return (await load(app.url, signRequest)).callsPerSecond;
    },
    () => rawProvider("pair-and-sign"),
  );
  app.send("reset");
  const signing = await load(app.url, signRequest);
  const busy = await app.ask("report");
  console.log(`  one call of these: p50 ${signing.p50Ms.toFixed(1)} ms, p99 ${signing.p99Ms.toFixed(1)} ms`);
  console.log(`  event loop delay under that load: p99 ${busy.p99Ms.toFixed(1)} ms`);
  console.log(`  memory: ${toMiB(rest.rssBytes)} MiB at rest, ${toMiB(busy.rssBytes)} MiB under load`);

  const verifyRequest = await createVerifyRequest();
  await compare(
    "VerifySignature over REST against Connect JSON",
    "reach 0.85",
    async () => (await load(app.url, json("/api/grpc/verify", verifyRequest))).callsPerSecond,
    async () => (await load(app.url, json("/pqc.PqcService/VerifySignature", verifyRequest))).callsPerSecond,
  );
  await compare(
    "Hello over REST against Connect JSON",
    "no target",
    async () => (await load(app.url, { path: "/api/hello", method: "GET" })).callsPerSecond,
    async () => (await load(app.url, json("/pqc.TokenService/Hello", "{}"))).callsPerSecond,
  );
  const check = grpc("/grpc.health.v1.Health/Check", new Uint8Array());
  await compare(
    "Health.Check over gRPC against @grpc/grpc-js",
    "reach 0.5",
    async () => (await load(app.url, check)).callsPerSecond,
    async () => (await load(grpcJs.url, check)).callsPerSecond,
  );
}

async function createVerifyRequest(): Promise<string> {
  const provider = await createCryptoProvider("openssl");
  const data = Buffer.alloc(32, 1);
  const { publicKey, secretKey } = await provider.generateKeyPair("ML-DSA-65");
  const signature = await provider.sign(secretKey, data);
  const request = create(VerifySignatureRequestSchema, { data, signature, publicKey: publicKey.exportRaw() });
  return toJsonString(VerifySignatureRequestSchema, request);
}

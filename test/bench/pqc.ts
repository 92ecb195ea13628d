/** Cost of signing with one-time keys, and of verification. */
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { type Child, compare, grpc, json, load, rawProvider, toMiB } from "./tools.ts";

export async function measurePqc(app: Child): Promise<void> {
  const rest = await app.ask("report");
  const signRequest = grpc(PqcService.method.signData, { data: Buffer.alloc(32, 1) });
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

  const { verifySignature } = PqcService.method;
  const signed = await signData();
  await compare(
    "VerifySignature over REST against Connect JSON",
    "reach 0.85",
    async () => (await load(app.url, json(verifySignature, signed, "/api/grpc/verify"))).callsPerSecond,
    async () => (await load(app.url, json(verifySignature, signed))).callsPerSecond,
  );
}

async function signData() {
  const provider = await createCryptoProvider("openssl");
  const data = Buffer.alloc(32, 1);
  const { publicKey, secretKey } = await provider.generateKeyPair("ML-DSA-65");
  return { data, signature: await provider.sign(secretKey, data), publicKey: publicKey.exportRaw() };
}

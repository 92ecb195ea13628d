/** The provider alone: `node raw-provider.ts <RawWork> <in flight> <ms>`. */
import os from "node:os";
import type { SignatureAlgorithm } from "../../src/crypto/algorithms.ts";

process.env.UV_THREADPOOL_SIZE ??= String(os.availableParallelism());
const { createCryptoProvider } = await import("../../src/crypto/create-provider.ts");

/** What can be measured. */
export type RawWork = "pair-and-sign" | "sign" | "verify ML-DSA-44" | "verify ML-DSA-65";

const what = process.argv[2] as RawWork;
const inFlight = Number(process.argv[3]);
const measureMs = Number(process.argv[4]);
const provider = await createCryptoProvider("openssl");
const message = Buffer.alloc(32, 1);
const warmUpMs = 1000;
const measureFromMs = performance.now() + warmUpMs;
const endMs = measureFromMs + measureMs;
let calls = 0;

const [, , verified = "ML-DSA-65"] = /^(verify) (.*)$/.exec(what) ?? [];
const stored = await provider.generateKeyPair(verified as SignatureAlgorithm);
const signature = await provider.sign(stored.secretKey, message);

async function work(): Promise<void> {
  if (what.startsWith("verify")) return void (await provider.verify(stored.publicKey, message, signature));
  if (what === "sign") return void (await provider.sign(stored.secretKey, message));
  const { secretKey, publicKey } = await provider.generateKeyPair("ML-DSA-65");
  await provider.sign(secretKey, message);
  publicKey.exportRaw();
}

async function worker(): Promise<void> {
  for (;;) {
    await work();
    const nowMs = performance.now();
    if (nowMs > endMs) return;
    if (nowMs > measureFromMs) calls += 1;
  }
}

await Promise.all(Array.from({ length: inFlight }, worker));
process.stdout.write(JSON.stringify({ callsPerSecond: calls / (measureMs / 1000) }));
process.exit(0);

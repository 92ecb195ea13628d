/** The provider alone: `node raw-provider.ts <pair-and-sign | sign> <in flight> <ms>`. */
import os from "node:os";

process.env.UV_THREADPOOL_SIZE ??= String(os.availableParallelism());
const { createCryptoProvider } = await import("../../src/crypto/create-provider.ts");

const what = process.argv[2];
const inFlight = Number(process.argv[3]);
const measureMs = Number(process.argv[4]);
const provider = await createCryptoProvider("openssl");
const message = Buffer.alloc(32, 1);
const warmUpMs = 1000;
const measureFromMs = performance.now() + warmUpMs;
const endMs = measureFromMs + measureMs;
let calls = 0;

const stored = await provider.generateKeyPair("ML-DSA-65");

async function work(): Promise<void> {
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

/** A provider without a server: `node raw-provider.ts <RawWork> <provider> <in flight> <ms>`. Prints RawResult as JSON. */
import os from "node:os";
import type { ProviderName } from "../../src/crypto/provider.ts";

process.env.UV_THREADPOOL_SIZE ??= String(os.availableParallelism());
const { createCryptoProvider } = await import("../../src/crypto/create-provider.ts");

/** The operations that can be measured. */
export type RawWork = "generate" | "sign" | "sign mu" | "verify";

/** The measurement. */
export interface RawResult {
  readonly callsPerSecond: number;
  /** CPU time of all threads for each operation, in microseconds. */
  readonly cpuPerCall: number;
}

const what = process.argv[2] as RawWork;
const provider = await createCryptoProvider(process.argv[3] as ProviderName);
const inFlight = Number(process.argv[4]);
const measureMs = Number(process.argv[5]);
const message = Buffer.alloc(32, 1);
const warmUpMs = Math.min(1000, measureMs / 2);

const stored = await provider.generateKeyPair("ML-DSA-65");
const signature = await provider.sign(stored.secretKey, message);
const hash = provider.startRepresentative(stored.publicKey);
hash.update(message);
const mu = hash.digest();

async function work(): Promise<void> {
  if (what === "verify") return void (await provider.verify(stored.publicKey, message, signature));
  if (what === "sign") return void (await provider.sign(stored.secretKey, message));
  if (what === "sign mu") return void (await provider.signRepresentative(stored.secretKey, mu));
  const { secretKey, publicKey } = await provider.generateKeyPair("ML-DSA-65");
  publicKey.exportRaw();
  secretKey.erase();
}

async function repeatUntil(endMs: number): Promise<number> {
  let calls = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() < endMs) {
      await work();
      calls += 1;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  return calls;
}

await repeatUntil(performance.now() + warmUpMs);
const startMs = performance.now();
const startCpu = process.cpuUsage();
const calls = await repeatUntil(startMs + measureMs);
const seconds = (performance.now() - startMs) / 1000;
const { user, system } = process.cpuUsage(startCpu);
const result: RawResult = { callsPerSecond: calls / seconds, cpuPerCall: (user + system) / calls };
process.stdout.write(JSON.stringify(result));
process.exit(0);

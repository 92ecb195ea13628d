/** Decides the number of threads for cryptographic operations. */
import os from "node:os";
import type { Config } from "../config.ts";

/** Threads in libuv's pool if UV_THREADPOOL_SIZE is not set. */
const defaultPoolThreads = 4;

/** Threads in libuv's pool for computation, excluding those for passwords; at most one per core. */
export function countCryptoThreads({ maxPasswordChecks }: Config): number {
  const poolThreads = Number(process.env.UV_THREADPOOL_SIZE) || defaultPoolThreads;
  return Math.max(1, Math.min(os.availableParallelism(), poolThreads - maxPasswordChecks));
}

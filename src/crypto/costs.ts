/**
 * Estimated cost of each operation, to charge callers fairly and to limit how long each caller's work waits.
 *
 * The costs are constants. Measured costs would include event-loop delays, and a busy server would then
 * reject work that it has time for.
 */
import type { Algorithm } from "./algorithms.ts";

export interface Cost {
  /** Milliseconds of one thread. */
  readonly costMs: number;
  /** Whether the work takes too long to run ahead of other work. */
  readonly isSlow: boolean;
}

/**
 * Milliseconds of one thread, measured with OpenSSL 3.5 on a 2023 server processor. Only their ratios matter.
 */
interface Costs {
  readonly generate: number;
  /** Signature or decapsulation. */
  readonly useSecret: number;
  /** Verification or encapsulation. */
  readonly usePublic: number;
}

/** The operations that run on the thread pool. Checking an imported secret key uses it once. */
const kinds = {
  generate: "generate",
  import: "useSecret",
  sign: "useSecret",
  "sign representative": "useSecret",
  verify: "usePublic",
  encapsulate: "usePublic",
  decapsulate: "useSecret",
} as const satisfies Record<string, keyof Costs>;

export type CostlyOperation = keyof typeof kinds;

const costs: Readonly<Record<Algorithm, Costs>> = {
  "ML-DSA-44": { generate: 0.12, useSecret: 0.3, usePublic: 0.12 },
  "ML-DSA-65": { generate: 0.2, useSecret: 0.45, usePublic: 0.17 },
  "ML-DSA-87": { generate: 0.27, useSecret: 0.55, usePublic: 0.25 },
  "SLH-DSA-SHA2-128s": { generate: 50, useSecret: 400, usePublic: 0.4 },
  "SLH-DSA-SHA2-128f": { generate: 1, useSecret: 22, usePublic: 1 },
  "SLH-DSA-SHA2-192s": { generate: 80, useSecret: 750, usePublic: 0.6 },
  "SLH-DSA-SHA2-192f": { generate: 1.2, useSecret: 40, usePublic: 1.5 },
  "SLH-DSA-SHA2-256s": { generate: 60, useSecret: 700, usePublic: 1 },
  "SLH-DSA-SHA2-256f": { generate: 3, useSecret: 80, usePublic: 1.7 },
  "SLH-DSA-SHAKE-128s": { generate: 120, useSecret: 900, usePublic: 0.8 },
  "SLH-DSA-SHAKE-128f": { generate: 2, useSecret: 40, usePublic: 2.2 },
  "SLH-DSA-SHAKE-192s": { generate: 150, useSecret: 1500, usePublic: 1.2 },
  "SLH-DSA-SHAKE-192f": { generate: 3, useSecret: 70, usePublic: 3.3 },
  "SLH-DSA-SHAKE-256s": { generate: 110, useSecret: 1300, usePublic: 1.6 },
  "SLH-DSA-SHAKE-256f": { generate: 6, useSecret: 140, usePublic: 3.3 },
  "ECDSA-P256": { generate: 0.05, useSecret: 0.05, usePublic: 0.09 },
  "MLDSA44-Ed25519-SHA512": { generate: 0.15, useSecret: 0.33, usePublic: 0.18 },
  "MLDSA65-Ed25519-SHA512": { generate: 0.23, useSecret: 0.48, usePublic: 0.23 },
  "MLDSA65-ECDSA-P256-SHA512": { generate: 0.25, useSecret: 0.5, usePublic: 0.26 },
  "MLDSA87-ECDSA-P384-SHA512": { generate: 0.7, useSecret: 1, usePublic: 0.6 },
  "ML-KEM-512": { generate: 0.05, useSecret: 0.05, usePublic: 0.04 },
  "ML-KEM-768": { generate: 0.07, useSecret: 0.06, usePublic: 0.05 },
  "ML-KEM-1024": { generate: 0.1, useSecret: 0.08, usePublic: 0.06 },
  "X-Wing": { generate: 0.15, useSecret: 0.15, usePublic: 0.2 },
};

/** How much longer the noble library, in JavaScript, takes for ML-DSA. */
const nobleFactor = 20;

/** Work that takes longer than this many milliseconds runs in the slow lane. */
const slowMs = 20;

/**
 * Message bytes that one thread hashes per millisecond. Hashing a long message takes longer than signing it.
 */
const hashedBytesPerMs = 300_000;

/**
 * Estimates the cost of an operation.
 *
 * @param work.isByNoble whether the noble library does it
 */
export function findCost(
  operation: CostlyOperation,
  algorithm: Algorithm,
  { messageBytes = 0, isByNoble = false } = {},
): Cost {
  const ms = costs[algorithm][kinds[operation]] * (isByNoble ? nobleFactor : 1);
  return { costMs: ms + messageBytes / hashedBytesPerMs, isSlow: ms > slowMs };
}

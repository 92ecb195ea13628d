/** Measures how long calls to this server take from the page's perspective, including the round trip. */
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import type { Caller } from "../../caller.ts";
import { toUtf8 } from "../../values.ts";
import type { AlgorithmRow, Times } from "./rows.ts";

const { signData, verifySignature, exchangeKeys } = PqcService.method;
const data = toUtf8("Pay 100 to Ada");

/** A slow algorithm is called once; a fast one until either bound is reached. */
export const maxRuns = 5;
export const maxMs = 400;

/**
 * @param now a clock in milliseconds
 * @throws Failure if a call fails
 */
export async function measureTimes(
  { name: algorithm, kind }: AlgorithmRow,
  { call }: Caller,
  now = () => performance.now(),
): Promise<Times> {
  if (kind === "Key exchange") {
    const made = await findFastest(() => call(exchangeKeys, { algorithm }), now);
    const { publicKey } = made.result;
    const used = await findFastest(() => call(exchangeKeys, { algorithm, publicKey }), now);
    return { makeMs: made.ms, useMs: used.ms };
  }
  const made = await findFastest(() => call(signData, { algorithm, data }), now);
  const { signature, publicKey } = made.result;
  const used = await findFastest(() => call(verifySignature, { algorithm, data, signature, publicKey }), now);
  return { makeMs: made.ms, useMs: used.ms };
}

/**
 * Calls repeatedly, one call at a time. Other load and a cold start can only slow a call down, so the fastest one
 * counts.
 */
async function findFastest<T>(call: () => Promise<T>, now: () => number): Promise<{ ms: number; result: T }> {
  const startedAt = now();
  let ms = Number.POSITIVE_INFINITY;
  for (let runs = 1; ; runs += 1) {
    const calledAt = now();
    const result = await call();
    ms = Math.min(ms, now() - calledAt);
    if (runs === maxRuns || now() - startedAt >= maxMs) return { ms, result };
  }
}

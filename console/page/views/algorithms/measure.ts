/** Measures how long calls to this server take from the page's perspective, including the round trip. */
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import type { Caller } from "../../caller.ts";
import { toUtf8 } from "../../values.ts";
import type { AlgorithmRow, Times } from "./rows.ts";

const { signData, verifySignature, exchangeKeys } = PqcService.method;

/** A slow algorithm is called once; a fast one until both bounds are reached. */
export const maxRuns = 5;
export const maxMs = 400;

interface Measuring {
  readonly caller: Caller;
  readonly signal: AbortSignal;
  /** Milliseconds. */
  readonly now: () => number;
}

/** @throws Failure if a call fails */
export async function measureTimes(
  { name: algorithm, kind }: AlgorithmRow,
  measuring: Measuring,
): Promise<Times> {
  const { caller, signal } = measuring;
  if (kind === "Key exchange") {
    const pair = () => caller.call(exchangeKeys, { algorithm }, { signal });
    const { publicKey } = await pair();
    return {
      makeMs: await measureCall(pair, measuring),
      useMs: await measureCall(
        () => caller.call(exchangeKeys, { algorithm, publicKey }, { signal }),
        measuring,
      ),
    };
  }
  const data = toUtf8("Pay 100 to Ada");
  const signed = await findMedian(() => caller.call(signData, { algorithm, data }, { signal }), measuring);
  const { signature, publicKey } = signed.result;
  const verify = () => caller.call(verifySignature, { algorithm, data, signature, publicKey }, { signal });
  return { makeMs: signed.ms, useMs: await measureCall(verify, measuring) };
}

/**
 * Makes calls that are not measured, because a page's first calls take longer: connections are opened, and
 * both sides compile code.
 *
 * @throws Failure if a call fails
 */
export async function warmUp(measuring: Measuring): Promise<void> {
  const { caller, signal } = measuring;
  await measureEmptyCall(measuring);
  await measureCall(() => caller.call(signData, { data: toUtf8("warm-up") }, { signal }), measuring);
}

/**
 * The round trip of a call without cryptography.
 *
 * @throws Failure if the call fails
 */
export function measureEmptyCall(measuring: Measuring): Promise<number> {
  const { caller, signal } = measuring;
  return measureCall(() => caller.call(TokenService.method.hello, {}, { signal }), measuring);
}

async function measureCall(call: () => Promise<unknown>, measuring: Measuring): Promise<number> {
  return (await findMedian(call, measuring)).ms;
}

/**
 * Calls repeatedly, one call at a time.
 *
 * @returns the median duration and the last result
 */
async function findMedian<T>(call: () => Promise<T>, { now }: Measuring): Promise<{ ms: number; result: T }> {
  const durations: number[] = [];
  const startedAt = now();
  for (;;) {
    const calledAt = now();
    const result = await call();
    durations.push(now() - calledAt);
    if (durations.length < maxRuns && now() - startedAt < maxMs) continue;
    return { ms: pickMedian(durations), result };
  }
}

/** The median; with an even number of values, the upper one of the two in the middle. */
export function pickMedian(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

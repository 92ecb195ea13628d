/** The signature of the overview: made by the server, or by the browser where the server asks for a token. */
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { signHere, verifyHere } from "../algorithms.ts";
import { readAnswerTime } from "../answer-time.ts";
import type { Caller } from "../caller.ts";
import { type Failure, toFailure } from "../failure.ts";
import { toUtf8 } from "../values.ts";

const { signData, verifySignature } = PqcService.method;

/** The algorithm of the overview. */
export const algorithm = "ML-DSA-65";
export const message = "Pay 100 to Ada";

/** A message with its signature, and where it was signed. */
export interface OpeningSignature {
  readonly by: "server" | "browser";
  readonly data: Uint8Array;
  readonly signature: Uint8Array;
  readonly publicKey: Uint8Array;
  /** The time to compute it in the browser, in milliseconds. Absent for the server: see `measureAnswer`. */
  readonly ms?: number;
  /** Why the server did not sign, if it was asked. */
  readonly failure?: Failure;
}

/** The result of one side, or why it has none. */
export type Finding = boolean | Failure | "not asked";

/** The results of both sides. */
export interface Findings {
  readonly server: Finding;
  readonly browser: Finding;
}

/**
 * Generates a key pair and signs.
 *
 * @param caller undefined if calls to the server are not possible
 */
export async function signOpening(caller: Caller | undefined): Promise<OpeningSignature> {
  const data = toUtf8(message);
  if (caller === undefined) return signInBrowser(data);
  try {
    const { signature, publicKey } = await caller.call(signData, { data, algorithm });
    return { by: "server", data, signature, publicKey };
  } catch (thrown) {
    return { ...(await signInBrowser(data)), failure: toFailure(thrown) };
  }
}

/**
 * Measures how long the server takes to generate a key pair and sign, with a separate call. The call that makes the
 * signature of the page does not count: the page still loads then, and a server that just started still warms up.
 *
 * @returns milliseconds; undefined if the server refuses, or the browser does not tell
 */
export async function measureAnswer(caller: Caller): Promise<number | undefined> {
  const startedAt = performance.now();
  try {
    await caller.call(signData, { data: toUtf8(message), algorithm });
  } catch {
    return undefined;
  }
  return readAnswerTime("pqc.PqcService/SignData", startedAt);
}

async function signInBrowser(data: Uint8Array): Promise<OpeningSignature> {
  const { ms, ...signed } = await signHere(algorithm, data);
  return { by: "browser", data, ...signed, ms };
}

/** @param signature that of the message, or one with flipped bits */
export async function verifyOpening(
  caller: Caller | undefined,
  { data, publicKey }: OpeningSignature,
  signature: Uint8Array,
): Promise<Findings> {
  const asked: Promise<Finding> =
    caller === undefined
      ? Promise.resolve("not asked")
      : caller
          .call(verifySignature, { algorithm, data, signature, publicKey })
          .then(({ valid }) => valid, toFailure);
  const computed: Promise<Finding> = verifyHere(algorithm, signature, data, publicKey).catch(toFailure);
  const [server, browser] = await Promise.all([asked, computed]);
  return { server, browser };
}

/** Flips the lowest bit of each of these bytes, in a copy. */
export function flipBits(bytes: Uint8Array, places: ReadonlySet<number>): Uint8Array {
  return bytes.map((byte, at) => (places.has(at) ? byte ^ 1 : byte));
}

/** Tells whether the browser rejects the signature, and the server too if it answered. */
export function isRejected({ server, browser }: Findings): boolean {
  return browser === false && server !== true;
}

/** Tells whether the browser accepts the signature, and the server too if it answered. */
export function isAccepted({ server, browser }: Findings): boolean {
  return browser === true && server !== false;
}

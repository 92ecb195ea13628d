/** The home page's signature: made by the server, or by the browser if the server requires a token. */
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { signHere, verifyHere } from "../algorithms.ts";
import type { Caller } from "../caller.ts";
import { type Failure, toFailure } from "../failure.ts";
import { toUtf8 } from "../values.ts";

const { signData, verifySignature } = PqcService.method;

/** The home page's algorithm. */
export const algorithm = "ML-DSA-65";
/** What is signed until the visitor types something else. */
export const firstMessage = "Pay 100 to Ada";

/** A message with its signature, and where it was signed. */
export interface HomeSignature {
  readonly by: "server" | "browser";
  readonly data: Uint8Array;
  readonly signature: Uint8Array;
  readonly publicKey: Uint8Array;
  /** Milliseconds to compute it in the browser. Absent for the server: see `measureAnswer`. */
  readonly ms?: number;
  /** Why the server did not sign, if it was asked. */
  readonly failure?: Failure;
}

/** One side's result, or why it has none. */
export type Finding = boolean | Failure | "not asked";

/** Both sides' results. */
export interface Findings {
  readonly server: Finding;
  readonly browser: Finding;
}

/**
 * Generates a key pair and signs.
 *
 * @param message not empty
 * @param caller undefined if the server cannot be called
 */
export async function signMessage(caller: Caller | undefined, message: string): Promise<HomeSignature> {
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
 * Measures how long the server takes to generate a key pair and sign, with a separate call. The call that
 * makes the page's signature does not count: the page is still loading then, and a new server is still
 * warming up.
 *
 * @returns milliseconds from the request to the answer; undefined if the server refuses
 */
export async function measureAnswer({ call }: Caller): Promise<number | undefined> {
  const startedAt = performance.now();
  return call(signData, { data: toUtf8(firstMessage), algorithm }).then(
    () => performance.now() - startedAt,
    () => undefined,
  );
}

async function signInBrowser(data: Uint8Array): Promise<HomeSignature> {
  const { ms, ...signed } = await signHere(algorithm, data);
  return { by: "browser", data, ...signed, ms };
}

/** @param signature the message's signature, possibly with flipped bits */
export async function verifyOnBothSides(
  caller: Caller | undefined,
  { data, publicKey }: HomeSignature,
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

/** Flips the lowest bit of each of these bytes in a copy. */
export function flipBits(bytes: Uint8Array, places: ReadonlySet<number>): Uint8Array {
  return bytes.map((byte, at) => (places.has(at) ? byte ^ 1 : byte));
}

/** Whether the browser rejects the signature, and the server too if it answered. */
export function isRejected({ server, browser }: Findings): boolean {
  return browser === false && server !== true;
}

/** Whether the browser accepts the signature, and the server too if it answered. */
export function isAccepted({ server, browser }: Findings): boolean {
  return browser === true && server !== false;
}

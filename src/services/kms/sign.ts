import type { BatchSignRequest, SignStreamRequest } from "#gen/kms/kms_service_pb.ts";
import {
  hasRepresentative,
  isCompositeAlgorithm,
  isMlDsaAlgorithm,
  type SignatureAlgorithm,
} from "../../crypto/algorithms.ts";
import type { CryptoProvider, PublicKey } from "../../crypto/provider.ts";
import { refuse, refuseField } from "../../errors.ts";
import type { CallerInput } from "../../identity/principal.ts";
import { beginAttempt, type KeyInput, recordingRefusal } from "./attempt.ts";
import { countFitting, type ResponseForm } from "./batch-size.ts";
import type { FindDeps } from "./find-key.ts";
import type { CachedKey } from "./key-cache.ts";
import { keyUsageMismatch } from "./key-refusals.ts";
import { findUsable, type Use, type UsedKey, useKey } from "./use-key.ts";

export interface SignDeps extends FindDeps {
  readonly provider: CryptoProvider;
}

export interface Signed extends UsedKey {
  readonly signature: Uint8Array;
}

/** The data to sign, or the mu of data that stays with the caller. */
export interface SignInput extends KeyInput {
  readonly data: Uint8Array;
  /** 0 to 255 bytes. */
  readonly context: Uint8Array;
  /** 64 bytes, or empty. */
  readonly mu: Uint8Array;
}

/** Only an ACTIVE key signs, for its owner and for grantees of SIGN. */
export const signing: Use = { operation: "SIGN", states: ["ACTIVE"], usage: "SIGN" };

/**
 * Signs with a stored key (FIPS 204, section 5.2; FIPS 205, section 10.2;
 * draft-ietf-lamps-pq-composite-sigs-19, section 3.2; pure, hedged).
 *
 * @throws the errors of `useKey`; KEY_USAGE_MISMATCH also for mu with a key that is not an ML-DSA key
 */
export function sign(deps: SignDeps, { data, context, mu, ...who }: SignInput): Promise<Signed> {
  return useKey(deps, who, signing, async (key) => {
    const isMu = mu.length > 0;
    if (isMu) requireMu(key);
    const secretKey = await key.secretKey();
    const signature = isMu
      ? await deps.provider.signRepresentative(secretKey, mu)
      : await deps.provider.sign(secretKey, data, context.length > 0 ? { context } : {});
    return { result: { signature }, details: [isMu ? "input=mu" : "input=data"] };
  });
}

/**
 * Maximum signatures of one batch in flight. The queue serves other callers in between, and charges each
 * signature separately. An SLH-DSA signature takes up to a second, and the threads finish it even if the
 * caller disconnects.
 */
const fastInFlight = 8;
const slhDsaInFlight = 1;

/**
 * Signs several messages with one key. Each message has its own audit entry; all are recorded together.
 *
 * @param form response encoding, which determines how many signatures fit
 * @throws the errors of `useKey`; before any signature is made, FIELD_INVALID if a message is empty, and
 *   BATCH_TOO_LARGE if the signatures would not fit into one response
 */
export function signBatch(
  deps: SignDeps,
  { keyId: handle, data, context }: BatchSignRequest,
  caller: CallerInput,
  form: ResponseForm,
) {
  return useKey(deps, { handle, ...caller }, signing, async (key) => {
    requireFitting(key, data, form);
    requireNoneEmpty(data);
    const secretKey = await key.secretKey();
    const signatures = new Array<Uint8Array>(data.length);
    let next = 0;
    let isOver = false;
    const signSome = async (): Promise<void> => {
      for (let i = next++; i < data.length && !isOver; i = next++) {
        caller.signal.throwIfAborted();
        const message = data[i] ?? new Uint8Array();
        signatures[i] = await deps.provider.unbounded.sign(secretKey, message, { context });
      }
    };
    const inFlight = hasRepresentative(key.record.algorithm) ? fastInFlight : slhDsaInFlight;
    try {
      await Promise.all(Array.from({ length: inFlight }, signSome));
    } finally {
      // After one failure, start no more signatures.
      isOver = true;
    }
    const details = data.map((_, i) => `input=data, batchItem=${i + 1}/${data.length}`);
    return { result: { results: signatures.map((signature) => ({ signature })) }, details };
  });
}

function requireFitting(
  { record: { algorithm } }: CachedKey,
  data: readonly Uint8Array[],
  form: ResponseForm,
): void {
  // useKey admits only signing keys.
  const maxItems = countFitting(algorithm as SignatureAlgorithm, form);
  if (data.length <= maxItems) return;
  const description =
    `has ${data.length} messages, whose ${algorithm} signatures do not fit into one response of 4 MiB; ` +
    `send at most ${maxItems}`;
  throw refuse(
    "BATCH_TOO_LARGE",
    `data: ${description}`,
    { field: "data", algorithm, items: String(data.length), maxItems: String(maxItems) },
    [{ field: "data", description }],
  );
}

/** Not a proto rule, because the refusal needs an audit log entry for the key: one for the whole batch. */
function requireNoneEmpty(data: readonly Uint8Array[]): void {
  const empty = data.findIndex((message) => message.length === 0);
  if (empty >= 0) throw refuseField(`data[${empty}]`, "is empty; send at least 1 byte");
}

/** One part of a message that is signed as it arrives. */
type SignPart = SignStreamRequest["part"];

/**
 * Signs a message as it arrives, in constant memory. Computes its representative from the chunks (FIPS 204,
 * algorithm 7, line 6; draft-ietf-lamps-pq-composite-sigs-19, section 3.2), so the signature covers the whole
 * message.
 *
 * @throws the errors of `useKey`; FIELD_INVALID if the parts are not a header followed by at least 1 byte
 */
export async function signStream(
  deps: SignDeps,
  stream: AsyncIterable<SignPart>,
  who: Pick<KeyInput, "principal" | "signal">,
): Promise<Signed> {
  const iterator = stream[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done === true || first.value.case !== "header")
    throw refuseField("header", "is missing; the first message of the stream is the header");
  const { keyId: handle, context } = first.value.value;
  const attempt = beginAttempt(signing.operation, { handle, ...who });
  const { keyId, representative, bytes } = await recordingRefusal(deps, attempt, async () => {
    const { key } = await findUsable(deps, attempt, signing);
    requireStreamed(key);
    const computed = await computeRepresentative(deps.provider, key.publicKey(), context, iterator);
    return { ...computed, keyId: key.record.keyId };
  });
  // The representative is bound to this key or algorithm. If the name has since been rotated, the signature would be worthless.
  return useKey(deps, { handle: keyId, ...who }, signing, async (key) => {
    const signature = await deps.provider.signRepresentative(await key.secretKey(), representative);
    return { result: { signature }, details: [`input=stream, bytes=${bytes}`] };
  });
}

async function computeRepresentative(
  provider: CryptoProvider,
  publicKey: PublicKey,
  context: Uint8Array,
  parts: AsyncIterator<SignPart>,
): Promise<{ representative: Uint8Array; bytes: number }> {
  const hash = provider.startRepresentative(publicKey, { context });
  let bytes = 0;
  for (;;) {
    const { done, value: part } = await parts.next();
    if (done === true) break;
    if (part.case !== "chunk")
      throw refuseField("header", "occurs twice; all messages after the first must be chunks");
    hash.update(part.value);
    bytes += part.value.length;
  }
  if (bytes === 0) throw refuseField("chunk", "is missing; send at least 1 byte of the message");
  return { representative: hash.digest(), bytes };
}

/** Only ML-DSA has a mu. */
function requireMu({ record }: CachedKey): void {
  if (isMlDsaAlgorithm(record.algorithm)) return;
  const instead = isCompositeAlgorithm(record.algorithm) ? "; send the message, or stream it" : "";
  throw keyUsageMismatch(record, `; mu requires an ML-DSA key${instead}`);
}

/** SLH-DSA reads a message twice (FIPS 205, algorithm 19). */
function requireStreamed({ record }: CachedKey): void {
  if (hasRepresentative(record.algorithm)) return;
  throw keyUsageMismatch(record, "; streams require an ML-DSA or composite key");
}

import { isMlDsaAlgorithm } from "../../crypto/algorithms.ts";
import { signEcdsaDigest } from "../../crypto/ecdsa-digest.ts";
import type { CryptoProvider, PublicKey } from "../../crypto/provider.ts";
import { refuse, refuseField } from "../../errors.ts";
import { countFitting, type ResponseForm } from "./batch-size.ts";
import type { CachedKey } from "./key-cache.ts";
import {
  done,
  findUsable,
  type KeyInput,
  openSecretKey,
  recordingRefusal,
  toWanted,
  type UseDeps,
  type UseInput,
  useKey,
} from "./use-key.ts";

/** The dependencies of signing. */
export interface SignDeps extends UseDeps {
  readonly provider: CryptoProvider;
}

/** A signature, and the key that made it. */
export interface Signed {
  readonly signature: Uint8Array;
  readonly keyId: string;
  readonly algorithm: string;
}

/** The data to sign, or the mu of data that stays with the caller. */
export interface SignInput extends KeyInput {
  readonly data: Uint8Array;
  /** 0 to 255 bytes. */
  readonly context: Uint8Array;
  /** 64 bytes, or none. */
  readonly mu: Uint8Array;
}

/** A use of a key that signs: only an ACTIVE key, for its owner and for grantees of SIGN. */
export function toSigningUse({ keyId, principal, signal }: KeyInput): UseInput {
  return { keyId, principal, signal, operation: "SIGN", states: ["ACTIVE"], usage: "SIGN" };
}

/**
 * Signs with a stored key (FIPS 204, section 5.2; FIPS 205, section 10.2; pure, hedged).
 *
 * @throws as useKey does; KEY_USAGE_MISMATCH also for mu with a key that is not an ML-DSA key
 */
export function sign(deps: SignDeps, { data, context, mu, ...who }: SignInput): Promise<Signed> {
  const input = toSigningUse(who);
  return useKey(deps, input, async (key) => {
    if (mu.length > 0) checkTakesMu(key);
    const secretKey = await openSecretKey(deps, key, input);
    const signature =
      mu.length > 0
        ? await deps.provider.signMu(secretKey, mu)
        : await deps.provider.sign(secretKey, data, context.length > 0 ? { context } : {});
    return { result: toSigned(key, signature), entries: [done(mu.length > 0 ? "input=mu" : "input=data")] };
  });
}

/**
 * Signs a SHA-256 digest with a stored ECDSA key, for Google's interface.
 *
 * @returns a signature in DER (RFC 3279, section 2.2.3).
 * @throws as useKey does; KEY_USAGE_MISMATCH for a key of another algorithm
 */
export function signDigest(
  deps: SignDeps,
  { digest, ...who }: KeyInput & { readonly digest: Uint8Array },
): Promise<Signed> {
  const input = toSigningUse(who);
  return useKey(deps, input, async (key) => {
    const { keyId, algorithm } = key.record;
    if (algorithm !== "ECDSA-P256")
      throw refuse(
        "KEY_USAGE_MISMATCH",
        `key ${keyId} is an ${algorithm} key, which signs data, not a digest`,
        {
          keyId,
          algorithm,
        },
      );
    const signature = await signEcdsaDigest(await openSecretKey(deps, key, input), digest);
    return { result: toSigned(key, signature), entries: [done("input=digest")] };
  });
}

/** Signatures in the order of the messages. */
export interface BatchSigned {
  readonly signatures: readonly Uint8Array[];
  readonly keyId: string;
  readonly algorithm: string;
}

/**
 * Signatures of one batch to request at a time. The queue serves other callers in between, and charges each signature
 * separately. An SLH-DSA signature takes up to a second, and the threads finish it even if the caller disconnects.
 */
const mlDsaInFlight = 8;
const slhDsaInFlight = 1;

/** The messages of a batch to sign. */
export interface BatchInput extends Omit<SignInput, "data" | "mu"> {
  readonly data: readonly Uint8Array[];
  /** How the response is encoded, which decides how many signatures fit into it. */
  readonly form: ResponseForm;
}

/**
 * Signs several messages with one key. Each message has its own audit entry; all are recorded together.
 *
 * @throws as useKey does; before any signature is made, FIELD_INVALID if a message is empty, and BATCH_TOO_LARGE if the
 *   signatures would not fit into one response
 */
export function signBatch(deps: SignDeps, input: BatchInput): Promise<BatchSigned> {
  const { data, context, signal } = input;
  const use = toSigningUse(input);
  return useKey(deps, use, async (key) => {
    requireFitting(key, input);
    requireNoneEmpty(data);
    const secretKey = await openSecretKey(deps, key, use);
    const signatures = new Array<Uint8Array>(data.length);
    let next = 0;
    let isOver = false;
    const signSome = async (): Promise<void> => {
      for (let i = next++; i < data.length && !isOver; i = next++) {
        signal.throwIfAborted();
        const message = data[i] ?? new Uint8Array();
        signatures[i] = await deps.provider.unbounded.sign(secretKey, message, { context });
      }
    };
    const inFlight = isMlDsaAlgorithm(key.record.algorithm) ? mlDsaInFlight : slhDsaInFlight;
    try {
      await Promise.all(Array.from({ length: inFlight }, signSome));
    } finally {
      // If one has failed, the others sign no more.
      isOver = true;
    }
    const { keyId, algorithm } = key.record;
    const entries = data.map((_, i) => done(`input=data, batchItem=${i + 1}/${data.length}`));
    return { result: { signatures, keyId, algorithm }, entries };
  });
}

function requireFitting({ record: { algorithm } }: CachedKey, { data, form }: BatchInput): void {
  const maxItems = countFitting(algorithm, form);
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

/** Not a rule of the proto, because the refusal has an entry in the audit log of the key: one, for the whole batch. */
function requireNoneEmpty(data: readonly Uint8Array[]): void {
  const empty = data.findIndex((message) => message.length === 0);
  if (empty >= 0) throw refuseField(`data[${empty}]`, "is empty; send at least 1 byte");
}

/** One part of a message that is signed as it arrives. */
export type SignPart =
  | { readonly case: "header"; readonly value: { readonly keyId: string; readonly context: Uint8Array } }
  | { readonly case: "chunk"; readonly value: Uint8Array }
  | { readonly case: undefined; readonly value?: undefined };

/**
 * Signs a message as it arrives, in constant memory. Computes mu from the chunks (FIPS 204, algorithm 7, line 6), so
 * the signature covers the whole message.
 *
 * @throws as useKey does; FIELD_INVALID if the parts are not a header followed by at least 1 byte
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
  const { keyId, context } = first.value.value;
  const named = toSigningUse({ keyId, ...who });
  const wanted = toWanted(named);
  const { publicKey, signingKeyId } = await recordingRefusal(deps, wanted, who.signal, async () => {
    const { key } = await findUsable(deps, named, wanted);
    checkTakesMu(key);
    return { publicKey: key.publicKey(), signingKeyId: key.record.keyId };
  });
  const { mu, bytes } = await recordingRefusal(deps, wanted, who.signal, () =>
    computeMu(deps.provider, publicKey, context, iterator),
  );
  // mu is bound to this key. If the name stands for another version by now, the signature would be worthless.
  const input = { ...named, keyId: signingKeyId };
  return useKey(deps, input, async (key) => {
    const secretKey = await openSecretKey(deps, key, input);
    const signature = await deps.provider.signMu(secretKey, mu);
    return { result: toSigned(key, signature), entries: [done(`input=stream, bytes=${bytes}`)] };
  });
}

async function computeMu(
  provider: CryptoProvider,
  publicKey: PublicKey,
  context: Uint8Array,
  parts: AsyncIterator<SignPart>,
): Promise<{ mu: Uint8Array; bytes: number }> {
  const hash = provider.startMu(publicKey, { context });
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
  return { mu: hash.digest(), bytes };
}

/** Only ML-DSA has a mu; SLH-DSA reads a message twice (FIPS 205, algorithm 19). */
function checkTakesMu({ record: { keyId, algorithm } }: CachedKey): void {
  if (isMlDsaAlgorithm(algorithm)) return;
  throw refuse(
    "KEY_USAGE_MISMATCH",
    `key ${keyId} is an ${algorithm} key; mu and streams need an ML-DSA key`,
    {
      keyId,
      algorithm,
    },
  );
}

function toSigned({ record: { keyId, algorithm } }: CachedKey, signature: Uint8Array): Signed {
  return { signature, keyId, algorithm };
}

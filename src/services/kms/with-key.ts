/** The way of every use of a key: find it, see whether it may, use it, and record that before anybody is answered. */
import { ConnectError } from "@connectrpc/connect";
import { CryptoError } from "../../crypto/crypto-error.ts";
import type { SecretKey } from "../../crypto/provider.ts";
import { CryptoBusyError } from "../../crypto/work-queue.ts";
import { explainAbort, findReason, type ReasonName, refuse } from "../../errors.ts";
import { IdempotencyConflictError } from "../../records/idempotency.ts";
import { isSeenBy, type Principal } from "../../records/ownership.ts";
import { QuotaExceededError } from "../../records/quota.ts";
import { type CachedKey, type KeyCache, keyDamaged } from "./key-cache.ts";
import type { KeyState, KeyUsage } from "./record.ts";
import type { KeyEvent, KmsStore, Operation, StoredKey } from "./store.ts";

/** What the uses of keys need. */
export interface UseDeps {
  readonly keys: KmsStore;
  readonly cache: KeyCache;
}

/** Which key, and who uses it. */
export interface KeyInput {
  readonly keyId: string;
  readonly principal: Principal;
  /** Tells when the caller has gone, or waits no more. */
  readonly signal: AbortSignal;
}

/** A use of a key. */
export interface UseInput extends KeyInput {
  readonly operation: Operation;
  /** The states that allow it. */
  readonly states: readonly KeyState[];
  /** What the key must be for. */
  readonly usage: KeyUsage;
}

/** What came of using a key. */
export interface UseOutcome<Result> {
  readonly result: Result;
  /** What the audit log says of it. */
  readonly entries: readonly UseEntry[];
}

/** One entry of the audit log on a use. */
export type UseEntry = Pick<KeyEvent, "outcome" | "details">;

/** The entry of a use that was done. */
export function done(details: string): UseEntry {
  return { outcome: "OK", details };
}

/**
 * Uses a key. The result is given back only once its audit entry is on the disk, and only if the key was still in a
 * state that allows the use at that moment: a rotation that was answered before goes before.
 *
 * @param work computes the result; what it throws as a refusal is recorded as one.
 * @throws KEY_NOT_FOUND, KEY_STATE_INVALID, KEY_USAGE_MISMATCH, KEY_DAMAGED, and what the work throws
 */
export async function useKey<Result>(
  deps: UseDeps,
  input: UseInput,
  work: (key: CachedKey) => Promise<UseOutcome<Result>>,
): Promise<Result> {
  const { keys, cache } = deps;
  const { keyId, operation, principal, signal } = input;
  const { result, entries } = await recordingRefusal(deps, input, async () => {
    try {
      return await work(await findUsable(cache, input));
    } catch (error) {
      // Its secret half was erased under the work: it was changed meanwhile, or others needed its place.
      if (!(error instanceof CryptoError && error.code === "CLOSED")) throw error;
      return work(await findUsable(cache, input));
    }
  });
  const events = entries.map((entry): KeyEvent => ({ keyId, operation, user: principal.user, ...entry }));
  for (;;) {
    const key = await recordingRefusal(deps, input, () => {
      // Nobody is there to be answered.
      signal.throwIfAborted();
      return findUsable(cache, input);
    });
    if (await keys.recordUse({ keyId, tag: key.tag, events })) return result;
    // Somebody changed the key meanwhile. Perhaps its new state allows the use as well; states only go on, so
    // this ends.
    cache.forget(keyId);
  }
}

/** Finds a key and sees whether it may be used. Throws what `useKey` does, and records nothing. */
export async function findUsable(
  cache: KeyCache,
  { keyId, principal, states, usage, operation }: UseInput,
): Promise<CachedKey> {
  const key = await cache.find(keyId);
  if (key === undefined || !isSeenBy(principal, key.record)) throw keyNotFound(keyId);
  if (!key.isIntact) throw keyDamaged(keyId);
  const { state, usage: actual, algorithm } = key.record;
  // First what no other state would change.
  if (actual !== usage)
    throw refuse(
      "KEY_USAGE_MISMATCH",
      `key ${keyId} is one of ${algorithm}, which is for ${actual}; ${operation} takes one that is for ${usage}`,
      { keyId, algorithm, usage: actual, operation },
    );
  if (!states.includes(state)) throw keyStateInvalid(key, operation);
  return key;
}

/** Opens the secret half of a key that was found. */
export async function openSecretKey({ cache }: UseDeps, key: CachedKey, input: UseInput): Promise<SecretKey> {
  const secretKey = await key.secretKey();
  if (secretKey !== undefined) return secretKey;
  // Either it was destroyed since the record was read, or its secret half was taken away.
  cache.forget(input.keyId);
  await findUsable(cache, input);
  throw keyDamaged(input.keyId);
}

/** Runs something, and puts an entry into the audit log if it refuses. */
export async function recordingRefusal<T>(
  { keys }: Pick<UseDeps, "keys">,
  { keyId, principal, signal, operation }: Omit<UseInput, "states" | "usage">,
  call: () => Promise<T>,
): Promise<T> {
  try {
    return await call();
  } catch (error) {
    const reason = reasonToRecord(error, signal);
    if (reason !== undefined)
      await keys.recordRefusal({
        keyId,
        operation,
        user: principal.user,
        outcome: "REFUSED",
        details: describeRefusal(reason),
      });
    throw error;
  }
}

/** Why a caller gets no answer; undefined for a fault that is not the caller's, nor that of what is asked. */
function reasonToRecord(error: unknown, signal: AbortSignal): ReasonName | undefined {
  if (error instanceof IdempotencyConflictError) return "IDEMPOTENCY_KEY_REUSED";
  if (error instanceof QuotaExceededError) return "QUOTA_EXCEEDED";
  if (error instanceof CryptoBusyError) return "SERVER_BUSY";
  return error instanceof ConnectError ? findReason(explainAbort(error, signal)) : undefined;
}

/** What the audit log says of a refusal. */
export function describeRefusal(reason: string): string {
  return `reason=${reason}`;
}

/** Refuses a key that is not there. */
export function keyNotFound(keyId: string): ConnectError {
  return refuse("KEY_NOT_FOUND", `key ${keyId} does not exist`, { keyId });
}

/** Refuses a key that is in no state for an operation, and names the one that took its place. */
export function keyStateInvalid({ record, replacedBy }: StoredKey, operation: Operation): ConnectError {
  const { keyId, state } = record;
  return refuse(
    "KEY_STATE_INVALID",
    `key ${keyId} is ${state}, which refuses ${operation}${replacedBy ? `; ${replacedBy} took its place` : ""}`,
    { keyId, state, operation, ...(replacedBy && { replacedBy }) },
  );
}

/** The steps of every use of a key: find it, check that the use is allowed, use it, and record the use, then answer. */
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

/** The key to use, and its caller. */
export interface KeyInput {
  readonly keyId: string;
  readonly principal: Principal;
  /** Aborts when the caller disconnects or stops waiting. */
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

/** The outcome of a use of a key. */
export interface UseOutcome<Result> {
  readonly result: Result;
  /** Its entries in the audit log. */
  readonly entries: readonly UseEntry[];
}

/** One audit entry for a use. */
export type UseEntry = Pick<KeyEvent, "outcome" | "details">;

/** The entry for a successful use. */
export function done(details: string): UseEntry {
  return { outcome: "OK", details };
}

/**
 * Uses a key. Returns the result only once its audit entry is on the disk, and only if the key is still in a state that
 * allows the use at that moment. A rotation that was answered earlier therefore takes effect first.
 *
 * @param work computes the result; a refusal that it throws is recorded as one.
 * @throws KEY_NOT_FOUND, KEY_STATE_INVALID, KEY_USAGE_MISMATCH, KEY_DAMAGED, and what `work` throws
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
      // Its secret half was erased during the work: the key was changed, or the cache needed its place.
      if (!(error instanceof CryptoError && error.code === "CLOSED")) throw error;
      return work(await findUsable(cache, input));
    }
  });
  const events = entries.map((entry): KeyEvent => ({ keyId, operation, user: principal.user, ...entry }));
  for (;;) {
    const key = await recordingRefusal(deps, input, () => {
      // Stop if the caller has disconnected.
      signal.throwIfAborted();
      return findUsable(cache, input);
    });
    if (await keys.recordUse({ keyId, tag: key.tag, events })) return result;
    // The key has changed in the meantime. Its new state may still allow the use. States only move forward, so the loop
    // ends.
    cache.forget(keyId);
  }
}

/** Finds a key and checks that it may be used. Throws what `useKey` throws, and records nothing. */
export async function findUsable(
  cache: KeyCache,
  { keyId, principal, states, usage, operation }: UseInput,
): Promise<CachedKey> {
  const key = await cache.find(keyId);
  if (key === undefined || !isSeenBy(principal, key.record)) throw keyNotFound(keyId);
  if (!key.isIntact) throw keyDamaged(keyId);
  const { state, usage: actual, algorithm } = key.record;
  // Check the usage first, because a change of state does not affect it.
  if (actual !== usage)
    throw refuse(
      "KEY_USAGE_MISMATCH",
      `key ${keyId} is an ${algorithm} key for ${actual}; ${operation} needs a key for ${usage}`,
      { keyId, algorithm, usage: actual, operation },
    );
  if (!states.includes(state)) throw keyStateInvalid(key, operation);
  return key;
}

/** Opens the secret half of a key. */
export async function openSecretKey({ cache }: UseDeps, key: CachedKey, input: UseInput): Promise<SecretKey> {
  const secretKey = await key.secretKey();
  if (secretKey !== undefined) return secretKey;
  // Either the key was destroyed after its record was read, or its secret half was removed from the store.
  cache.forget(input.keyId);
  await findUsable(cache, input);
  throw keyDamaged(input.keyId);
}

/** Runs a function, and writes an audit entry if it refuses. */
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

/** Finds the reason to record. @returns undefined for a fault that neither the caller nor the request caused */
function reasonToRecord(error: unknown, signal: AbortSignal): ReasonName | undefined {
  if (error instanceof IdempotencyConflictError) return "IDEMPOTENCY_KEY_REUSED";
  if (error instanceof QuotaExceededError) return "QUOTA_EXCEEDED";
  if (error instanceof CryptoBusyError) return "SERVER_BUSY";
  return error instanceof ConnectError ? findReason(explainAbort(error, signal)) : undefined;
}

/** The details of a refusal in the audit log. */
export function describeRefusal(reason: string): string {
  return `reason=${reason}`;
}

/** The refusal for a key that does not exist. */
export function keyNotFound(keyId: string): ConnectError {
  return refuse("KEY_NOT_FOUND", `key ${keyId} does not exist`, { keyId });
}

/** The refusal for a key whose state does not allow an operation; names the key that replaced it. */
export function keyStateInvalid({ record, replacedBy }: StoredKey, operation: Operation): ConnectError {
  const { keyId, state } = record;
  return refuse(
    "KEY_STATE_INVALID",
    `key ${keyId} is ${state} and does not allow ${operation}${replacedBy ? `; use ${replacedBy}` : ""}`,
    { keyId, state, operation, ...(replacedBy && { replacedBy }) },
  );
}

/** Using a key: find it, check permission, use it, record the use, then respond. */
import { CryptoError } from "../../crypto/crypto-error.ts";
import type { KeyUsage } from "../../crypto/key-uses.ts";
import { StoreFailureError } from "../../database/store-error.ts";
import { type Attempt, beginAttempt, type KeyInput, recordingRefusal } from "./attempt.ts";
import { eventBy, type Operation, subjectOf } from "./event.ts";
import {
  type AllowedKey,
  type FindDeps,
  findKey,
  findKnownId,
  forgetHandle,
  requirePermission,
} from "./find-key.ts";
import { isWholeName } from "./handle.ts";
import type { CachedKey } from "./key-cache.ts";
import { keyDamaged, keyNotFound, keyStateInvalid, keyUsageMismatch } from "./key-refusals.ts";
import type { KeyState } from "./record.ts";
import type { KeyUse } from "./store.ts";

/** A kind of use, such as signing. */
export interface Use {
  readonly operation: Operation;
  /** Key states that allow it. */
  readonly states: readonly KeyState[];
  /** Usage that the key must have. */
  readonly usage: KeyUsage;
}

/** What work with a key produced, and what to record about it. */
export interface Work<Result> {
  readonly result: Result;
  /** Details of its audit log entries, one entry each. */
  readonly details: readonly string[];
}

/** The key that a result belongs to. */
export interface UsedKey {
  readonly keyId: string;
  readonly algorithm: string;
}

/** Maximum retries when the key is erased during the work, because others keep changing it. */
export const maxAttempts = 100;

/**
 * Uses a key.
 *
 * 1. Resolve the handle to a key: in the cache, or in the store if the cache may be stale.
 * 2. Check that the caller may use the key, as its owner or by a grant.
 * 3. Check that the key is intact and has the right usage, and that its state allows the use.
 * 4. Do the work.
 * 5. In a transaction, read the key and the grant again. If they are unchanged, record the work.
 * 6. Respond once the entries are on disk.
 *
 * So a key change that returned before the use takes effect before it. If the key has changed in the
 * meantime, retry with what the store has now; the result of work with the same key is kept. Also retry if
 * the secret half was erased during the work: by a change, or because the cache evicted the key. A refusal in
 * any step is recorded.
 *
 * @param work computes the result; a refusal that it throws is recorded too
 * @throws KEY_NOT_FOUND, GRANT_MISSING, KEY_STATE_INVALID, KEY_USAGE_MISMATCH, KEY_DAMAGED, and the errors
 *   of `work`
 */
export async function useKey<Result extends object>(
  deps: FindDeps,
  input: KeyInput,
  use: Use,
  work: (key: CachedKey) => Promise<Work<Result>>,
): Promise<Result & UsedKey> {
  const { principal, signal } = input;
  const { operation } = use;
  const attempt = beginAttempt(operation, input);
  return recordingRefusal(deps, attempt, async () => {
    let done: (Work<Result> & UsedKey) | undefined;
    for (let attempts = 1; ; attempts += 1) {
      const { key, grant } = await findUsable(deps, attempt, use);
      const { keyId, algorithm } = key.record;
      if (done?.keyId !== keyId) {
        const mayBeginAgain = attempts < maxAttempts && !signal.aborted;
        const outcome = await unlessErased(work(key), mayBeginAgain);
        if (outcome === undefined) continue;
        done = { ...outcome, keyId, algorithm };
      }
      signal.throwIfAborted();
      const { result, details } = done;
      const subject = subjectOf(key.record);
      const events = details.map((text) =>
        eventBy(principal, subject, { operation, outcome: "OK", details: text }),
      );
      if (await recordUse(deps, operation, { keys: [{ keyId, tag: key.tag, grant }], events }))
        return { ...result, keyId, algorithm };
      deps.cache.forget(keyId);
      forgetHandle(deps, attempt);
    }
  });
}

/**
 * @returns undefined if the secret half was erased during the work, which may be retried
 */
export async function unlessErased<T>(working: Promise<T>, mayBeginAgain: boolean): Promise<T | undefined> {
  try {
    return await working;
  } catch (error) {
    if (mayBeginAgain && error instanceof CryptoError && error.code === "CLOSED") return undefined;
    throw error;
  }
}

/**
 * @returns false if the key has changed since it was found, or its grant has ended
 */
export async function recordUse({ keys }: FindDeps, operation: Operation, use: KeyUse): Promise<boolean> {
  try {
    return await keys.recordUse(use);
  } catch (error) {
    // A verification uses only the public half. On a full disk it is answered without an entry: everyone may
    // need to verify, and the entries would use up the reserve.
    const isFull = error instanceof StoreFailureError && error.code === "FULL";
    const [verified] = use.keys;
    if (operation !== "VERIFY" || !isFull || verified === undefined) throw error;
    return (await keys.find(verified.keyId))?.tag === verified.tag;
  }
}

/**
 * Finds a usable key, which becomes the subject of the attempt.
 *
 * @throws the errors of `useKey`
 */
export async function findUsable(deps: FindDeps, attempt: Attempt, use: Use): Promise<AllowedKey<CachedKey>> {
  const found = (await findInCache(deps, attempt, use)) ?? (await findThroughStore(deps, attempt));
  const { record, isIntact } = found.key;
  if (!isIntact) throw keyDamaged(record.keyId);
  // Check the usage first, because state changes do not affect it.
  if (record.usage !== use.usage) {
    const { usage: actual } = record;
    const need = ` with usage ${actual}; ${use.operation} needs usage ${use.usage}`;
    throw keyUsageMismatch(record, need, { usage: actual, operation: use.operation });
  }
  if (!use.states.includes(record.state)) throw keyStateInvalid(record, use.operation);
  return found;
}

/**
 * @returns undefined if the cached key does not allow the use: it may have been enabled or rotated in the
 *   meantime
 */
async function findInCache(
  deps: FindDeps,
  attempt: Attempt,
  { states }: Use,
): Promise<AllowedKey<CachedKey> | undefined> {
  const keyId = findKnownId(deps, attempt);
  const key = keyId === undefined ? undefined : await deps.cache.find(keyId);
  if (key === undefined || !states.includes(key.record.state)) return undefined;
  if (isWholeName(attempt.handle) && !key.record.isPrimary) return undefined;
  attempt.subject = subjectOf(key.record);
  return requirePermission(deps, attempt, key);
}

/** Finds a key in the store, and updates the cache. */
async function findThroughStore(deps: FindDeps, attempt: Attempt): Promise<AllowedKey<CachedKey>> {
  const { cache } = deps;
  // Check permission first: the time that the cache takes would reveal a key that the caller may not see.
  const { key: stored, grant } = await findKey(deps, attempt);
  const { keyId } = stored.record;
  const cached = await cache.find(keyId);
  // An up-to-date key stays cached, because other calls may be using it.
  if (cached?.tag === stored.tag) return { key: cached, grant };
  cache.forget(keyId);
  const key = await cache.find(keyId);
  if (key === undefined) throw keyNotFound(attempt.handle);
  return { key, grant };
}

/** The use of a key: find it, check that the use is allowed, use it, and record the use, then answer. */
import { CryptoError } from "../../crypto/crypto-error.ts";
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
import type { KeyState, KeyUsage } from "./record.ts";
import type { KeyUse } from "./store.ts";

/** A kind of use. */
export interface Use {
  readonly operation: Operation;
  /** The states of a key that allow it. */
  readonly states: readonly KeyState[];
  /** The usage that the key must have. */
  readonly usage: KeyUsage;
}

/** The outcome of work with a key. */
export interface Work<Result> {
  readonly result: Result;
  /** The details of its entries in the audit log: one entry for each. */
  readonly details: readonly string[];
}

/** The key that a result belongs to. */
export interface UsedKey {
  readonly keyId: string;
  readonly algorithm: string;
}

/** How often work begins again because its key was erased, while others change the key all the time. */
const maxAttempts = 100;

/**
 * Uses a key.
 *
 * 1. Find the key that the handle stands for: in the cache, or in the store if the cache may be behind it.
 * 2. Check that the caller may use it, as its owner or by a grant.
 * 3. Check that it is intact, that it has the usage, and that its state allows the use.
 * 4. Do the work with it.
 * 5. Read the key and the grant again, in a transaction. If they are as in steps 1 and 2, record the work in it.
 * 6. Answer, once the entries are on the disk.
 *
 * So a change of the key that was answered before the use takes effect before it. If the key has changed meanwhile, begin
 * again with what the store has now; what was computed with the same key is kept. Also begin again if its secret half was
 * erased during the work: by a change, or because the cache needed the place. A refusal in any step is recorded.
 *
 * @param work computes the result; a refusal that it throws is recorded too.
 * @throws KEY_NOT_FOUND, GRANT_MISSING, KEY_STATE_INVALID, KEY_USAGE_MISMATCH, KEY_DAMAGED, and what `work` throws
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
      // Stop if the caller has disconnected.
      signal.throwIfAborted();
      const { result, details } = done;
      const subject = subjectOf(key.record);
      const events = details.map((text) =>
        eventBy(principal, subject, { operation, outcome: "OK", details: text }),
      );
      if (await recordUse(deps, operation, { keyId, tag: key.tag, grant, events }))
        return { ...result, keyId, algorithm };
      deps.cache.forget(keyId);
      forgetHandle(deps, attempt);
    }
  });
}

/** @returns undefined if the secret half of the key was erased during the work, which may begin again */
async function unlessErased<T>(working: Promise<T>, mayBeginAgain: boolean): Promise<T | undefined> {
  try {
    return await working;
  } catch (error) {
    if (mayBeginAgain && error instanceof CryptoError && error.code === "CLOSED") return undefined;
    throw error;
  }
}

/** @returns false if the key has changed since it was found, or its grant has ended */
async function recordUse({ keys }: FindDeps, operation: Operation, use: KeyUse): Promise<boolean> {
  try {
    return await keys.recordUse(use);
  } catch (error) {
    // A verification takes only the public half. On a full disk it is answered without an entry, because everyone may
    // have to verify, and their entries would use up the reserve.
    const isFull = error instanceof StoreFailureError && error.code === "FULL";
    if (operation !== "VERIFY" || !isFull) throw error;
    return (await keys.find(use.keyId))?.tag === use.tag;
  }
}

/** Finds a key that may be used, which becomes the subject of the attempt. @throws what `useKey` throws */
export async function findUsable(deps: FindDeps, attempt: Attempt, use: Use): Promise<AllowedKey<CachedKey>> {
  const found = (await findInCache(deps, attempt, use)) ?? (await findThroughStore(deps, attempt));
  const { record, isIntact } = found.key;
  if (!isIntact) throw keyDamaged(record.keyId);
  // Check the usage first, because a change of state does not affect it.
  if (record.usage !== use.usage) {
    const { usage: actual } = record;
    const need = `; ${use.operation} needs ${keysFor[use.usage]}`;
    throw keyUsageMismatch(record, need, { usage: actual, operation: use.operation });
  }
  if (!use.states.includes(record.state)) throw keyStateInvalid(record, use.operation);
  return found;
}

const keysFor: Readonly<Record<KeyUsage, string>> = {
  SIGN: "an ML-DSA or SLH-DSA key",
  KEM: "an ML-KEM or X-Wing key",
};

/** @returns undefined if the cache has no key that allows the use: it may have been enabled, or rotated, meanwhile */
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

/** Finds a key in the store, and brings the cache up to date with it. */
async function findThroughStore(deps: FindDeps, attempt: Attempt): Promise<AllowedKey<CachedKey>> {
  const { cache } = deps;
  // The permission comes first: the time that the cache takes would tell of a key that the caller may not know of.
  const { key: stored, grant } = await findKey(deps, attempt);
  const { keyId } = stored.record;
  const cached = await cache.find(keyId);
  // A key that is not behind is left alone, because others may be using it.
  if (cached?.tag === stored.tag) return { key: cached, grant };
  cache.forget(keyId);
  const key = await cache.find(keyId);
  if (key === undefined) throw keyNotFound(attempt.handle);
  return { key, grant };
}

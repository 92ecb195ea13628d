/** The steps of every use of a key: find it, check that the use is allowed, use it, and record the use, then answer. */
import { Code, ConnectError } from "@connectrpc/connect";
import { CryptoError } from "../../crypto/crypto-error.ts";
import type { SecretKey } from "../../crypto/provider.ts";
import { StoreFailureError } from "../../database/store-error.ts";
import { explainAbort, findCoreReason, type ReasonName, refuse } from "../../errors.ts";
import { IdempotencyConflictError } from "../../records/idempotency.ts";
import type { Principal } from "../../records/ownership.ts";
import { QuotaExceededError } from "../../records/quota.ts";
import { eventBy, type KeyEvent, type Operation, type Subject, subjectOf } from "./event.ts";
import {
  aboutHandle,
  checkAllowed,
  type FindDeps,
  type FoundKey,
  findKey,
  findKnownId,
  forgetHandle,
  type Wanted,
} from "./find-key.ts";
import { type CachedKey, keyDamaged } from "./key-cache.ts";
import type { KeyRecord, KeyState, KeyUsage } from "./record.ts";
import type { KeyUse, StoredKey } from "./store.ts";

/** The dependencies of uses of keys. */
export type UseDeps = FindDeps;

/** The key to use, and its caller. */
export interface KeyInput {
  /** The handle of the key, as the caller sent it. */
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
  /** The usage that the key must have. */
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

/** How often work begins again because its key was erased, while others change the key all the time. */
const maxAttempts = 100;

/** The entry for a successful use. */
export function done(details: string): UseEntry {
  return { outcome: "OK", details };
}

/**
 * Uses a key. Returns the result only once its audit entry is on the disk, and only if the key is still in a state that
 * allows the use at that moment, and the caller may still use it. A change that was answered earlier therefore takes
 * effect first.
 *
 * @param work computes the result; a refusal that it throws is recorded as one.
 * @throws KEY_NOT_FOUND, GRANT_MISSING, KEY_STATE_INVALID, KEY_USAGE_MISMATCH, KEY_DAMAGED, and what `work` throws
 */
export async function useKey<Result>(
  deps: UseDeps,
  input: UseInput,
  work: (key: CachedKey) => Promise<UseOutcome<Result>>,
): Promise<Result> {
  const { cache } = deps;
  const { operation, principal, signal } = input;
  const wanted = toWanted(input);
  const find = (): Promise<FoundKey<CachedKey>> => findUsable(deps, input, wanted);
  return recordingRefusal(deps, wanted, signal, async () => {
    for (let attempt = 1; ; attempt += 1) {
      let found = await find();
      const { keyId } = found.key.record;
      const outcome = await work(found.key).catch((error: unknown) => {
        // Its secret half was erased during the work: the key was changed, or the cache needed its place.
        const isErased = error instanceof CryptoError && error.code === "CLOSED";
        if (isErased && attempt < maxAttempts && !signal.aborted) return undefined;
        throw error;
      });
      if (outcome === undefined) continue;
      const { result, entries } = outcome;
      const subject = subjectOf(found.key.record);
      const events = entries.map((entry) => eventBy(principal, subject, { operation, ...entry }));
      // A name may stand for another version by now, which has to do the work again.
      while (found.key.record.keyId === keyId) {
        // Stop if the caller has disconnected.
        signal.throwIfAborted();
        const use = { keyId, tag: found.key.tag, grant: found.grant, events };
        if (await recordUse(deps, operation, use)) return result;
        // The key has changed in the meantime. Its new state may still allow the use.
        cache.forget(keyId);
        forgetHandle(deps, wanted);
        found = await find();
      }
    }
  });
}

/** @returns false if the key has changed since it was found, or its grant has ended */
async function recordUse({ keys }: UseDeps, operation: Operation, use: KeyUse): Promise<boolean> {
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

/** The key and the permission that a use looks for. */
export function toWanted({ keyId, principal, operation }: Omit<UseInput, "states" | "usage">): Wanted {
  return { handle: keyId, principal, operation, about: aboutHandle(keyId) };
}

/** Finds a key and checks that it may be used. Throws what `useKey` throws, and records nothing. */
export async function findUsable(
  deps: UseDeps,
  input: UseInput,
  wanted: Wanted,
): Promise<FoundKey<CachedKey>> {
  const { cache } = deps;
  const known = findKnownId(deps, wanted);
  const key = known === undefined ? undefined : await cache.find(known);
  if (key !== undefined && isUsable(key, input, wanted)) return check(deps, input, wanted, key);
  // The cache may be behind the store: the key is enabled by now, or the name stands for another version. It may also
  // have a key that the caller may not know of, which its speed would tell.
  const { key: stored } = await findKey(deps, wanted);
  const { keyId } = stored.record;
  const cached = await cache.find(keyId);
  // A key that is not behind is left alone, because others may be using it.
  if (cached?.tag === stored.tag) return check(deps, input, wanted, cached);
  cache.forget(keyId);
  return check(deps, input, wanted, await cache.find(keyId));
}

/** Tells whether a key of the cache can be used without another look at the store. */
function isUsable({ record }: CachedKey, { keyId, states }: UseInput, { handle }: Wanted): boolean {
  const isByName = keyId !== record.keyId && handle.endsWith(`name/${record.name}`);
  return states.includes(record.state) && (record.isPrimary || !isByName);
}

async function check(
  deps: UseDeps,
  { states, usage, operation }: UseInput,
  wanted: Wanted,
  key: CachedKey | undefined,
): Promise<FoundKey<CachedKey>> {
  const grant = await checkAllowed(deps, wanted, key?.record);
  const found = key as CachedKey;
  const { keyId, state, usage: actual, algorithm } = found.record;
  if (!found.isIntact) throw keyDamaged(keyId);
  // Check the usage first, because a change of state does not affect it.
  if (actual !== usage)
    throw refuse(
      "KEY_USAGE_MISMATCH",
      `key ${keyId} is an ${algorithm} key; ${operation} needs ${keysFor[usage]}`,
      { keyId, algorithm, usage: actual, operation },
    );
  if (!states.includes(state)) throw keyStateInvalid(found, operation);
  return { key: found, grant };
}

/** Opens the secret half of a key. */
export async function openSecretKey(deps: UseDeps, key: CachedKey, input: UseInput): Promise<SecretKey> {
  const secretKey = await key.secretKey();
  if (secretKey !== undefined) return secretKey;
  // Either the key was destroyed after its record was read, or its secret half was removed from the store.
  const { keyId } = key.record;
  deps.cache.forget(keyId);
  const byId = { ...input, keyId };
  await findUsable(deps, byId, toWanted(byId));
  throw keyDamaged(keyId);
}

/** Runs a function, and records in the audit log if it refuses. */
export async function recordingRefusal<T>(
  { keys }: Pick<UseDeps, "keys">,
  { principal, operation, about }: Wanted,
  signal: AbortSignal,
  call: () => Promise<T>,
): Promise<T> {
  try {
    return await call();
  } catch (error) {
    const reason = reasonToRecord(error, signal);
    if (reason !== undefined)
      await keys.recordRefusal(refusalBy(principal, about.subject, operation, reason));
    throw error;
  }
}

/** Finds the reason to record. @returns undefined for a fault of the server, and for a refusal because of load */
function reasonToRecord(error: unknown, signal: AbortSignal): ReasonName | undefined {
  if (error instanceof IdempotencyConflictError) return "IDEMPOTENCY_KEY_REUSED";
  if (error instanceof QuotaExceededError) return "QUOTA_EXCEEDED";
  if (!(error instanceof ConnectError)) return undefined;
  const explained = explainAbort(error, signal);
  const reason = findCoreReason(explained);
  return isAboutLoad(explained.code) && reason !== "BODY_TOO_LARGE" ? undefined : reason;
}

/** Tells whether a refusal says nothing about the key and its caller. Under load there are many, all alike. */
function isAboutLoad(code: Code): boolean {
  return [Code.ResourceExhausted, Code.DeadlineExceeded, Code.Canceled, Code.Unavailable].includes(code);
}

/** Describes a refused operation. */
export function refusalBy(
  principal: Principal,
  subject: Subject,
  operation: Operation,
  reason: ReasonName,
): KeyEvent {
  return eventBy(principal, subject, { operation, outcome: "REFUSED", details: `reason=${reason}` });
}

const keysFor: Readonly<Record<KeyUsage, string>> = {
  SIGN: "an ML-DSA or SLH-DSA key",
  KEM: "an ML-KEM or X-Wing key",
};

/** What else there is to say of a change that has happened, or cannot be undone. */
const sentences: Readonly<Record<string, string>> = {
  "ENABLE ACTIVE": "is already active",
  "DISABLE DISABLED": "is already disabled",
  "RESTORE DESTROYED": "was destroyed; its secret key cannot be restored",
};

/** The refusal for a key whose state does not allow an operation; says what does. */
export function keyStateInvalid({ record }: StoredKey, operation: Operation): ConnectError {
  const { keyId, state, replacedBy } = record;
  const advice = adviseInstead(record, operation);
  return refuse(
    "KEY_STATE_INVALID",
    `key ${keyId} ${sentences[`${operation} ${state}`] ?? `is ${state} and does not allow ${operation}`}${advice && `; ${advice}`}`,
    { keyId, state, operation, ...(replacedBy && { replacedBy }) },
  );
}

/** Advises a caller whose use is refused; empty if there is no alternative. */
function adviseInstead({ state, replacedBy }: KeyRecord, operation: Operation): string {
  // The key that replaced it makes new signatures and secrets, but cannot verify or recover those of this key.
  if (replacedBy && (operation === "SIGN" || operation === "ENCAPSULATE")) return `use ${replacedBy}`;
  if (!["SIGN", "VERIFY", "ENCAPSULATE", "DECAPSULATE"].includes(operation)) return "";
  const revival: Partial<Record<KeyState, string>> = {
    DISABLED: "enable it",
    DESTROY_SCHEDULED: "restore and enable it",
  };
  const publicKey = operation === "VERIFY" ? "verify with its public key, which GetKey returns" : "";
  return [revival[state] ?? "", publicKey].filter((part) => part !== "").join(", or ");
}

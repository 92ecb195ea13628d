/**
 * Does scheduled work on keys: destructions, rotations, and the end of grants and import tokens.
 *
 * Every server polls for due work. The transaction that does it checks again, and only one transaction writes at a time,
 * so the work is done exactly once. After a crash, the next poll of any server finds the remaining work.
 */
import { withFreshKeyPair } from "../../crypto/fresh-key-pair.ts";
import { poll } from "../../database/poll.ts";
import { findReason, type ReasonName } from "../../errors.ts";
import type { Principal } from "../../records/ownership.ts";
import { QuotaExceededError } from "../../records/quota.ts";
import { intact } from "../../records/table-declaration.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { type ChangeDeps, changeInTransaction } from "./change.ts";
import { findNextRotation } from "./create.ts";
import { subjectOf } from "./event.ts";
import { endGrant } from "./grants.ts";
import { endImport } from "./import.ts";
import { destruction } from "./life-cycle.ts";
import type { KeyName } from "./record.ts";
import { findRotationRefusal, rotation } from "./rotate.ts";
import type { StoredKey } from "./store.ts";
import { keyQuota } from "./tables.ts";
import { refusalBy, toWanted } from "./with-key.ts";

/** Milliseconds between polls. */
const pollIntervalMs = 500;
/** The most items of each kind to do at a time. */
const maxItems = 64;
/** Seconds after which a rotation that failed is tried again, or its period if that is shorter. */
const retrySeconds = 3600;

/** The principal of scheduled work, which no user requests. */
const schedulePrincipal: Principal = { user: "schedule", userId: "schedule", owner: undefined };
const never = new AbortController().signal;

/** Starts polling for due work. @returns a function that stops it, and waits for work in progress */
export function startSchedule(deps: ChangeDeps): () => Promise<void> {
  let running = Promise.resolve();
  let isStopped = false;
  const work = (): Promise<void> => {
    if (isStopped) return running;
    running = doDueWork(deps);
    return running;
  };
  void work().catch(() => {});
  const stop = poll(pollIntervalMs, work);
  return async () => {
    isStopped = true;
    stop();
    await running.catch(() => {});
  };
}

/** Does the work that is due. Work that fails stays due. */
export async function doDueWork(deps: ChangeDeps): Promise<void> {
  const atMs = deps.now().getTime();
  const { keys } = deps;
  const due = await Promise.all([
    keys.listDue(atMs, maxItems),
    keys.names.listDue(atMs, maxItems),
    keys.grants.listExpired(atMs, maxItems),
    keys.imports.listExpired(atMs, maxItems),
  ]);
  const [destructions, rotations, grants, imports] = due;
  const work = [
    ...destructions.map(({ record }) => destroyDue(deps, record.keyId)),
    ...rotations.map(({ record }) => rotateDue(deps, record)),
    ...grants.map(({ record }) => endGrant(deps, record.grantId, schedulePrincipal)),
    ...imports.map(({ record }) => endImport(deps, record.importId)),
  ];
  await Promise.allSettled(work);
}

async function destroyDue(deps: ChangeDeps, keyId: string): Promise<void> {
  const { store, keys, cache, now } = deps;
  const wanted = toWanted({ keyId, principal: schedulePrincipal, signal: never, operation: "DESTROY" });
  await store.write(async (transaction) => {
    const key = await keys.findForChange(transaction, keyId);
    const { state, destroyAt } = key?.record ?? {};
    if (state !== "DESTROY_SCHEDULED" || destroyAt === undefined || destroyAt > now()) return;
    await changeInTransaction(deps, transaction, { wanted, keyId }, destruction(deps, schedulePrincipal));
  });
  cache.forget(keyId);
}

async function rotateDue(deps: ChangeDeps, due: KeyName): Promise<void> {
  const { store, cache, provider } = deps;
  const { primaryKeyId: keyId } = due;
  if (keyId === undefined) return;
  const hindrance = await findHindrance(deps, keyId);
  if (hindrance !== undefined) await putOff(deps, due, hindrance);
  // A rotation that the queue refuses stays due.
  else
    await withFreshKeyPair(provider, due.algorithm, ({ secretKey }) =>
      store.write(async (transaction) => {
        if (!(await findStillDue(deps, transaction, due))) return;
        const change = rotation(deps, schedulePrincipal, secretKey);
        const wanted = toWanted({ keyId, principal: schedulePrincipal, signal: never, operation: "ROTATE" });
        await changeInTransaction(deps, transaction, { wanted, keyId }, change);
      }),
    );
  cache.forget(keyId);
}

/** Finds why a key cannot be rotated now. */
async function findHindrance({ keys, store }: ChangeDeps, keyId: string): Promise<Hindrance | undefined> {
  const key = await keys.find(keyId);
  if (key === undefined) return undefined;
  const refusal = findRotationRefusal(key);
  if (refusal !== undefined) return { key, reason: findReason(refusal) ?? "INTERNAL" };
  try {
    await store.requireRoom(keyQuota, key.record.owner);
    return undefined;
  } catch (error) {
    if (error instanceof QuotaExceededError) return { key, reason: "QUOTA_EXCEEDED" };
    throw error;
  }
}

/** A key that cannot be rotated now, and why. */
interface Hindrance {
  readonly key: StoredKey;
  readonly reason: ReasonName;
}

/** Postpones a rotation that is not possible, and records why. */
async function putOff(deps: ChangeDeps, due: KeyName, { key, reason }: Hindrance): Promise<void> {
  const isPutOff = await deps.store.write(async (transaction) => {
    const named = await findStillDue(deps, transaction, due);
    if (!named) return false;
    const seconds = Math.min(named.rotationPeriodSeconds ?? retrySeconds, retrySeconds);
    // A destroyed key never comes back. A new primary version sets the time again.
    const isOver = key.record.state === "DESTROYED";
    const nextRotationAt = isOver ? undefined : findNextRotation(deps.now(), seconds);
    await deps.keys.names.update(transaction, intact(named), { nextRotationAt });
    return true;
  });
  if (isPutOff)
    await deps.keys.recordRefusal(refusalBy(schedulePrincipal, subjectOf(key.record), "ROTATE", reason));
}

/** Reads a name in a transaction. @returns undefined if its rotation is not due any more */
async function findStillDue(
  { keys, now }: ChangeDeps,
  transaction: WriteTransaction,
  { owner, name, primaryKeyId }: KeyName,
): Promise<KeyName | undefined> {
  const named = await keys.names.find(owner, name, transaction);
  const isStill = named?.nextRotationAt !== undefined && named.nextRotationAt <= now();
  return isStill && named.primaryKeyId === primaryKeyId ? named : undefined;
}

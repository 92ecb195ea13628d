/**
 * Does scheduled work on keys: destructions, rotations, and the end of grants and import tokens.
 *
 * Every server polls for due work. The transaction that does the work checks again, and only one transaction
 * writes at a time, so the work is done exactly once. After a crash, the next poll of any server finds the
 * remaining work.
 */
import { withFreshKeyPair } from "../../crypto/fresh-key-pair.ts";
import { createDueWork, type DueItem, type DueKind } from "../../database/due-work.ts";
import { poll } from "../../database/poll.ts";
import { findCoreReason, type ReasonName } from "../../errors.ts";
import type { DueRecords } from "../../records/due-records.ts";
import { QuotaExceededError } from "../../records/quota.ts";
import { intact } from "../../records/table-declaration.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { refusalBy } from "./attempt.ts";
import { applyChange, type ChangeDeps, takeAnswer } from "./change.ts";
import { findNextRotation } from "./create.ts";
import { type Actor, subjectOf } from "./event.ts";
import { endGrant } from "./grants.ts";
import { endImport } from "./import.ts";
import { keyDamaged, keyNotFound } from "./key-refusals.ts";
import { destruction } from "./life-cycle.ts";
import { findRotationRefusal, rotation } from "./rotate.ts";
import type { StoredKey } from "./store.ts";
import type { KeyName } from "./tables.ts";
import { keyQuota } from "./tables.ts";

/** Interval of polls for due work. */
const pollIntervalMs = 500;
/** Interval of reports about overdue work. */
const reportIntervalMs = 10_000;
/** Retry delay of a rotation that is not possible now; its period if that is shorter. */
const retrySeconds = 3600;

/** The actor in entries about scheduled work: no caller requested it. */
const schedule: Actor = { user: "schedule" };

export function createSchedule(deps: ChangeDeps) {
  const { store, now } = deps;
  const all = listKinds(deps).map((kind) => createDueWork(kind, { background: store.background, now }));
  return {
    /** Does a batch of the due work. Work that fails stays due, and is retried after a delay. */
    doDueWork: () => settleAll(all.map(({ doDue }) => doDue())),
    /** Reports how much work is overdue. */
    reportOverdue: () => settleAll(all.map(({ reportOverdue }) => reportOverdue())),
  };
}

/**
 * Starts polling for due work.
 *
 * @returns a function that stops polling, and waits for work in progress
 */
export function startSchedule(deps: ChangeDeps): () => Promise<void> {
  const { background } = deps.store;
  const { doDueWork, reportOverdue } = createSchedule(deps);
  const working = { work: "kms_schedule", everyMs: pollIntervalMs, startsAtOnce: true, background };
  const stopWorking = poll(working, doDueWork);
  const stopReporting = poll({ ...working, work: "kms_overdue", everyMs: reportIntervalMs }, reportOverdue);
  return async () => {
    await stopWorking();
    await stopReporting();
  };
}

/**
 * Waits for all, even if one fails: one unreadable table does not block the others.
 *
 * @throws the first error
 */
async function settleAll(running: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(running)).find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw failed.reason;
}

function listKinds(deps: ChangeDeps): DueKind[] {
  const { keys } = deps;
  return [
    toKind("kms_destroy", keys.due, ({ keyId }) => ({
      about: { keyId, operation: "DESTROY" },
      run: () => destroyDue(deps, keyId),
    })),
    toKind("kms_rotate", keys.names.due, (record) => ({
      about: { keyId: record.primaryKeyId ?? "", operation: "ROTATE" },
      run: () => rotateDue(deps, record),
    })),
    toKind("kms_end_grant", keys.grants.due, ({ grantId, keyId }) => ({
      about: { keyId, grantId, operation: "REVOKE_GRANT" },
      run: () => endGrant(deps, grantId, schedule),
    })),
    toKind("kms_end_import", keys.imports.due, ({ importId }) => ({
      about: { importId },
      run: () => endImport(deps, importId),
    })),
  ];
}

function toKind<T>(
  work: string,
  due: DueRecords<T>,
  toItem: (record: T) => Pick<DueItem, "about" | "run">,
): DueKind {
  return {
    work,
    list: async (atMs, limit, after) =>
      (await due.list(atMs, limit, after)).map(({ record, ...position }) => ({
        ...position,
        ...toItem(record),
      })),
    count: due.count,
  };
}

async function destroyDue(deps: ChangeDeps, keyId: string): Promise<void> {
  const { store, keys, cache, now } = deps;
  const changed = await store.write(
    async (transaction) => {
      const key = await keys.findForChange(transaction, keyId);
      if (key?.record.destroyAt === undefined || key.record.destroyAt > now()) return undefined;
      // No other state has a destruction time, so the record was changed outside the server.
      if (key.record.state !== "DESTROY_SCHEDULED") throw keyDamaged(keyId);
      return applyChange(transaction, key, destruction(deps, schedule));
    },
    { priority: "safety" },
  );
  cache.forget(keyId);
  if (changed !== undefined) takeAnswer(changed);
}

async function rotateDue(deps: ChangeDeps, due: KeyName): Promise<void> {
  const { store, keys, cache, provider } = deps;
  const { primaryKeyId: keyId } = due;
  if (keyId === undefined) return;
  const hindrance = await findHindrance(deps, keyId);
  if (hindrance !== undefined) await putOff(deps, due, hindrance);
  else {
    // A rotation that the queue refuses stays due.
    const changed = await withFreshKeyPair(provider, due.algorithm, ({ secretKey }) =>
      store.write(async (transaction) => {
        if (!(await findStillDue(deps, transaction, due))) return undefined;
        const key = await keys.findForChange(transaction, keyId);
        if (key === undefined) throw keyNotFound(keyId);
        return applyChange(transaction, key, rotation(deps, schedule, secretKey));
      }),
    );
    if (changed !== undefined) takeAnswer(changed);
  }
  cache.forget(keyId);
}

/** Finds why a key cannot be rotated now. */
async function findHindrance({ keys, store }: ChangeDeps, keyId: string): Promise<Hindrance | undefined> {
  const key = await keys.find(keyId);
  if (key === undefined) return undefined;
  const refusal = findRotationRefusal(key);
  if (refusal !== undefined) return { key, reason: findCoreReason(refusal) ?? "INTERNAL" };
  try {
    await store.requireRoom(keyQuota, key.record.owner);
    return undefined;
  } catch (error) {
    if (error instanceof QuotaExceededError) return { key, reason: "QUOTA_EXCEEDED" };
    throw error;
  }
}

/** A key that cannot be rotated now, and the reason. */
interface Hindrance {
  readonly key: StoredKey;
  readonly reason: ReasonName;
}

/** Postpones a rotation that is not possible, and records the reason. */
async function putOff(deps: ChangeDeps, due: KeyName, { key, reason }: Hindrance): Promise<void> {
  const isPutOff = await deps.store.write(async (transaction) => {
    const named = await findStillDue(deps, transaction, due);
    if (!named) return false;
    const seconds = Math.min(named.rotationPeriodSeconds ?? retrySeconds, retrySeconds);
    // A destroyed key never returns. A new primary version sets the time again.
    const isOver = key.record.state === "DESTROYED";
    const nextRotationAt = isOver ? undefined : findNextRotation(deps.now(), seconds);
    await deps.keys.names.update(transaction, intact(named), { nextRotationAt });
    return true;
  });
  if (isPutOff) await deps.keys.recordRefusal(refusalBy(schedule, subjectOf(key.record), "ROTATE", reason));
}

/**
 * Reads a name in a transaction.
 *
 * @returns undefined if its rotation is no longer due
 */
async function findStillDue(
  { keys, now }: ChangeDeps,
  transaction: WriteTransaction,
  { owner, name, primaryKeyId }: KeyName,
): Promise<KeyName | undefined> {
  const named = await keys.names.find(owner, name, transaction);
  const isStill = named?.nextRotationAt !== undefined && named.nextRotationAt <= now();
  return isStill && named.primaryKeyId === primaryKeyId ? named : undefined;
}

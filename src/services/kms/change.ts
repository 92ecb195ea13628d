/**
 * The steps that all key changes share: find the key, and change it in the transaction that records the
 * change.
 */
import type { ConnectError } from "@connectrpc/connect";
import type { CallerInput } from "../../identity/principal.ts";
import type { AnswerCodec } from "../../records/idempotency.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import type { WritePriority } from "../../store/writers.ts";
import { type Attempt, beginAttempt, type KeyInput, recordingRefusal } from "./attempt.ts";
import type { CreateDeps } from "./create.ts";
import { type ChangingOperation, subjectOf } from "./event.ts";
import { type FindDeps, findPermission, resolveHandle } from "./find-key.ts";
import type { StoredKey } from "./store.ts";

export interface ChangeDeps extends CreateDeps, FindDeps {}

/** The key to change, and the call that changes it. */
export interface ChangeInput extends KeyInput, Pick<CallerInput, "idempotentCall"> {}

export interface ChangeKind<Answer> {
  readonly operation: ChangingOperation;
  readonly codec: AnswerCodec<Answer>;
  /** "safety" for a change that takes the key out of use, which must work even on a full disk. */
  readonly priority?: WritePriority;
}

export interface Change<Answer> {
  /** Returns the refusal if the key, as read in the transaction, cannot be changed. */
  readonly findRefusal: (key: StoredKey) => ConnectError | undefined;
  /** Changes the key, and records the change. */
  readonly apply: (transaction: WriteTransaction, key: StoredKey) => Promise<Answer>;
}

/**
 * A change's answer or its refusal. A refusal does not roll back the transaction, which other changes share.
 */
export type Changed<Answer> = { readonly answer: Answer } | { readonly refusal: ConnectError };

/** Changes the key with an ID, if the caller may. */
export type ChangeById<Answer> = (keyId: string, change: Change<Answer>) => Promise<Changed<Answer>>;

/**
 * Changes a key. If callers race, the change applies to the key's state in the transaction.
 *
 * @throws KEY_NOT_FOUND, GRANT_MISSING, IDEMPOTENCY_KEY_REUSED, and the refusals of the change
 */
export function changeKey<Answer>(
  deps: ChangeDeps,
  input: ChangeInput,
  change: ChangeKind<Answer> & Change<Answer>,
): Promise<Answer> {
  return runChange(deps, input, change, async (attempt, changeById) =>
    changeById(await resolveHandle(deps, attempt), change),
  );
}

/**
 * Runs a change once per idempotency key.
 *
 * @param prepare finds the key, does the work before the transaction, and changes the key
 * @throws the errors of `changeKey`
 */
export function runChange<Answer>(
  deps: ChangeDeps,
  input: ChangeInput,
  kind: ChangeKind<Answer>,
  prepare: (attempt: Attempt, changeById: ChangeById<Answer>) => Promise<Changed<Answer>>,
): Promise<Answer> {
  const attempt = beginAttempt(kind.operation, input);
  return recordingRefusal(deps, attempt, async () => {
    const changed = await deps.store.runIdempotent(
      input.idempotentCall,
      wrapCodec(kind.codec),
      (write) =>
        prepare(attempt, async (keyId, change) => {
          const outcome = await write((transaction) =>
            changeIfAllowed(deps, transaction, { attempt, keyId }, change),
          );
          deps.cache.forget(keyId);
          return outcome;
        }),
      kind,
    );
    return takeAnswer(changed);
  });
}

/**
 * Changes a key, which becomes the subject of the attempt. Grants allow no changes, so only the owner and
 * administrators pass.
 */
async function changeIfAllowed<Answer>(
  deps: FindDeps,
  transaction: WriteTransaction,
  { attempt, keyId }: { readonly attempt: Attempt; readonly keyId: string },
  change: Change<Answer>,
): Promise<Changed<Answer>> {
  const key = await deps.keys.findForChange(transaction, keyId);
  if (key !== undefined) attempt.subject = subjectOf(key.record);
  const permission = await findPermission(deps, attempt, key);
  return "refusal" in permission ? permission : applyChange(transaction, permission.key, change);
}

/** Changes a key within a transaction, or returns the refusal. */
export async function applyChange<Answer>(
  transaction: WriteTransaction,
  key: StoredKey,
  { findRefusal, apply }: Change<Answer>,
): Promise<Changed<Answer>> {
  const refusal = findRefusal(key);
  return refusal === undefined ? { answer: await apply(transaction, key) } : { refusal };
}

/**
 * Unwraps the answer of a change.
 *
 * @throws its refusal
 */
export function takeAnswer<Answer>(changed: Changed<Answer>): Answer {
  if ("refusal" in changed) throw changed.refusal;
  return changed.answer;
}

/** Encodes answers only: refusals are not stored, because a retry may succeed. */
export function wrapCodec<Answer>({ encode, decode }: AnswerCodec<Answer>): AnswerCodec<Changed<Answer>> {
  return {
    encode: (changed) => ("answer" in changed ? encode(changed.answer) : undefined),
    decode: (bytes) => ({ answer: decode(bytes) }),
  };
}

/** The steps of every change of a key: find it, and change it in the transaction that records the change. */
import { ConnectError } from "@connectrpc/connect";
import type { AnswerCodec, IdempotentCall } from "../../records/idempotency.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import type { WritePriority } from "../../store/writers.ts";
import type { CreateDeps } from "./create.ts";
import { type ChangingOperation, eventBy, subjectOf } from "./event.ts";
import { checkAllowed, type FindDeps, keyNotFound, resolveHandle, type Wanted } from "./find-key.ts";
import type { StoredKey } from "./store.ts";
import { type KeyInput, recordingRefusal, toWanted } from "./use-key.ts";

/** The dependencies of changes of keys. */
export interface ChangeDeps extends CreateDeps, FindDeps {}

/** The key to change, and the call that changes it. */
export interface ChangeInput extends KeyInput {
  readonly idempotentCall: IdempotentCall | undefined;
}

/** A change of one key. */
export interface Change<Answer> {
  readonly operation: ChangingOperation;
  readonly codec: AnswerCodec<Answer>;
  /** "safety" if it takes the key away, so that it must be possible on a full disk. */
  readonly priority?: WritePriority;
  /** Finds why the key, as it is in the transaction, cannot be changed. */
  readonly findRefusal: (key: StoredKey) => ConnectError | undefined;
  /** Changes the key, and records that. */
  readonly apply: (transaction: WriteTransaction, key: StoredKey) => Promise<Answer>;
}

/** The outcome of a change: its answer or its refusal. A refusal does not roll back the transaction, which others share. */
export type Changed<Answer> = { readonly answer: Answer } | { readonly refusal: ConnectError };

/**
 * Changes a key. If callers race, the change applies to the state that the key has in the transaction.
 *
 * @throws KEY_NOT_FOUND, GRANT_MISSING, IDEMPOTENCY_KEY_REUSED, and the refusals of the change
 */
export async function changeKey<Answer>(
  deps: ChangeDeps,
  input: ChangeInput,
  change: Change<Answer>,
): Promise<Answer> {
  const { store, cache } = deps;
  const wanted = toWanted({ ...input, operation: change.operation });
  let keyId = "";
  return recordingRefusal(deps, wanted, input.signal, async () => {
    const { idempotentCall } = input;
    const changed = await store.runIdempotent(
      idempotentCall,
      wrapCodec(change.codec),
      async (write) => {
        keyId = await resolveHandle(deps, wanted);
        return write((transaction) => changeInTransaction(deps, transaction, { wanted, keyId }, change));
      },
      change,
    );
    cache.forget(keyId);
    return takeAnswer(changed);
  });
}

/** Changes a key within a transaction, or finds why not. */
export async function changeInTransaction<Answer>(
  deps: FindDeps,
  transaction: WriteTransaction,
  { wanted, keyId }: { readonly wanted: Wanted; readonly keyId: string },
  change: Change<Answer>,
): Promise<Changed<Answer>> {
  const key = await deps.keys.findForChange(transaction, keyId);
  const refusal = (await findDenial(deps, wanted, key)) ?? (key && change.findRefusal(key));
  if (key !== undefined && refusal === undefined) return { answer: await change.apply(transaction, key) };
  return { refusal: refusal ?? keyNotFound(wanted.handle) };
}

/** Grants allow no changes, so only the owner of a key and administrators pass. */
async function findDenial(
  deps: FindDeps,
  wanted: Wanted,
  key: StoredKey | undefined,
): Promise<ConnectError | undefined> {
  try {
    await checkAllowed(deps, wanted, key?.record);
    return undefined;
  } catch (error) {
    if (error instanceof ConnectError) return error;
    throw error;
  }
}

/** Records a change of a key. */
export function recordChange(
  transaction: WriteTransaction,
  { principal, operation }: Pick<Wanted, "principal" | "operation">,
  key: StoredKey,
  details: string,
): void {
  transaction.audit(eventBy(principal, subjectOf(key.record), { operation, outcome: "OK", details }));
}

/** Returns the answer of a change. @throws its refusal */
export function takeAnswer<Answer>(changed: Changed<Answer>): Answer {
  if ("refusal" in changed) throw changed.refusal;
  return changed.answer;
}

/** Refusals are not stored, because a retry may succeed. */
export function wrapCodec<Answer>({ encode, decode }: AnswerCodec<Answer>): AnswerCodec<Changed<Answer>> {
  return {
    encode: (changed) => ("answer" in changed ? encode(changed.answer) : undefined),
    decode: (bytes) => ({ answer: decode(bytes) }),
  };
}

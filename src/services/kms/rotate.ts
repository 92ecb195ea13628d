import type { ConnectError } from "@connectrpc/connect";
import { findReason } from "../../errors.ts";
import type { AnswerCodec, IdempotentCall } from "../../records/idempotency.ts";
import { isSeenBy } from "../../records/ownership.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { type CreateDeps, withNewKey } from "./create.ts";
import { type KeyCache, keyDamaged } from "./key-cache.ts";
import type { KeyRecord } from "./record.ts";
import { keyRecordCodec } from "./record-message.ts";
import type { StoredKey } from "./store.ts";
import { keyQuota } from "./tables.ts";
import {
  describeRefusal,
  type KeyInput,
  keyNotFound,
  keyStateInvalid,
  recordingRefusal,
} from "./with-key.ts";

/** What changes of keys need. */
export interface ChangeDeps extends CreateDeps {
  readonly cache: KeyCache;
}

/** The key to change, and the call that changes it. */
export interface ChangeInput extends KeyInput {
  readonly idempotentCall: IdempotentCall | undefined;
}

/** The outcome of a change: its answer or its refusal. Either one has an entry in the audit log. */
type Changed<Answer> = { readonly answer: Answer } | { readonly refusal: ConnectError };

/**
 * Replaces an ACTIVE key with a new one of the same algorithm. If callers race, only one succeeds.
 *
 * @returns the new key.
 * @throws KEY_NOT_FOUND, KEY_STATE_INVALID, KEY_DAMAGED, IDEMPOTENCY_KEY_REUSED, QUOTA_EXCEEDED
 */
export async function rotateKey(deps: ChangeDeps, input: ChangeInput): Promise<KeyRecord> {
  const { store, cache } = deps;
  const { keyId, idempotentCall } = input;
  const changed = await recordingRefusal(deps, { ...input, operation: "ROTATE" }, () =>
    store.runIdempotent(idempotentCall, wrapCodec(keyRecordCodec), async (write) => {
      const old = await findRotatable(deps, input);
      await store.requireRoom(keyQuota, old.owner);
      const wanted = { algorithm: old.algorithm, alias: `${old.alias}-rotated`, owner: old.owner };
      return withNewKey(deps, wanted, (record, secret) =>
        write((transaction) => replaceKey(deps, transaction, input, record, secret)),
      );
    }),
  );
  cache.forget(keyId);
  return takeAnswer(changed);
}

/** Reads the key to replace, to learn its algorithm and alias. The transaction reads it again and decides. */
async function findRotatable({ keys }: ChangeDeps, { keyId, principal }: ChangeInput): Promise<KeyRecord> {
  const found = await keys.find(keyId);
  if (found === undefined || !isSeenBy(principal, found.record)) throw keyNotFound(keyId);
  if (!found.isIntact) throw keyDamaged(keyId);
  if (found.record.state !== "ACTIVE") throw keyStateInvalid(found, "ROTATE");
  return found.record;
}

async function replaceKey(
  deps: ChangeDeps,
  transaction: WriteTransaction,
  input: ChangeInput,
  record: KeyRecord,
  secret: Uint8Array,
): Promise<Changed<KeyRecord>> {
  const {
    keyId,
    principal: { user },
  } = input;
  const { refusal, key } = await findChangeable(deps, transaction, input, "ROTATE");
  if (refusal) return { refusal };
  await deps.keys.changeState(transaction, key, "ROTATED");
  transaction.audit({ keyId, operation: "ROTATE", user, outcome: "OK", details: `newKeyId=${record.keyId}` });
  await deps.keys.insert(transaction, record, secret);
  transaction.audit({
    keyId: record.keyId,
    operation: "CREATE",
    user,
    outcome: "OK",
    details: `algorithm=${record.algorithm}, usage=${record.usage}, rotatedFrom=${keyId}`,
  });
  return { answer: record };
}

/**
 * Destroys an ACTIVE or ROTATED key: erases its secret half permanently.
 *
 * @returns its keyId.
 * @throws KEY_NOT_FOUND, KEY_STATE_INVALID, IDEMPOTENCY_KEY_REUSED
 */
export async function destroyKey(deps: ChangeDeps, input: ChangeInput): Promise<string> {
  const { store, keys, cache } = deps;
  const {
    keyId,
    principal: { user },
    idempotentCall,
  } = input;
  const changed = await recordingRefusal(deps, { ...input, operation: "DESTROY" }, () =>
    store.writeIdempotent(idempotentCall, wrapCodec(keyIdCodec), async (transaction) => {
      const { refusal, key } = await findChangeable(deps, transaction, input, "DESTROY");
      if (refusal) return { refusal };
      await keys.changeState(transaction, key, "DESTROYED");
      const details = `stateBefore=${key.record.state}`;
      transaction.audit({ keyId, operation: "DESTROY", user, outcome: "OK", details });
      return { answer: keyId };
    }),
  );
  cache.forget(keyId);
  return takeAnswer(changed);
}

/** Finds the key to change, within the transaction, and records a refusal in the transaction's audit entries. */
async function findChangeable(
  { keys }: ChangeDeps,
  transaction: WriteTransaction,
  { keyId, principal }: ChangeInput,
  operation: "ROTATE" | "DESTROY",
): Promise<{ refusal: ConnectError; key?: never } | { refusal?: never; key: StoredKey }> {
  const found = await keys.findForChange(transaction, keyId);
  const key = found && isSeenBy(principal, found.record) ? found : undefined;
  const refusal = findChangeRefusal(key, keyId, operation);
  if (key !== undefined && refusal === undefined) return { key };
  const error = refusal ?? keyNotFound(keyId);
  const details = describeRefusal(findReason(error) ?? "INTERNAL");
  transaction.audit({ keyId, operation, user: principal.user, outcome: "REFUSED", details });
  return { refusal: error };
}

function findChangeRefusal(
  key: StoredKey | undefined,
  keyId: string,
  operation: "ROTATE" | "DESTROY",
): ConnectError | undefined {
  if (key === undefined) return keyNotFound(keyId);
  const { state } = key.record;
  if (operation === "DESTROY") {
    // A damaged key can still be destroyed, once.
    const isDestroyed = state === "DESTROYED" && key.loggedState === "DESTROYED";
    return isDestroyed ? keyStateInvalid(key, operation) : undefined;
  }
  if (!key.isIntact) return keyDamaged(keyId);
  return state === "ACTIVE" ? undefined : keyStateInvalid(key, operation);
}

function takeAnswer<Answer>(changed: Changed<Answer>): Answer {
  if ("refusal" in changed) throw changed.refusal;
  return changed.answer;
}

/** Refusals are not stored, because a retry may succeed. */
function wrapCodec<Answer>({ encode, decode }: AnswerCodec<Answer>): AnswerCodec<Changed<Answer>> {
  return {
    encode: (changed) => ("answer" in changed ? encode(changed.answer) : undefined),
    decode: (bytes) => ({ answer: decode(bytes) }),
  };
}

const keyIdCodec: AnswerCodec<string> = {
  encode: (keyId) => new TextEncoder().encode(keyId),
  decode: (bytes) => new TextDecoder().decode(bytes),
};

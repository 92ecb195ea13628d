/** Key state changes other than rotation: see docs/keys.md. */
import type { ConnectError } from "@connectrpc/connect";
import { refuse } from "../../errors.ts";
import type { AnswerCodec } from "../../records/idempotency.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { type Change, type ChangeDeps, type ChangeInput, changeKey } from "./change.ts";
import { type Actor, type ChangingOperation, enabledAsRotated, recordDone, subjectOf } from "./event.ts";
import { keyDamaged, keyStateInvalid } from "./key-refusals.ts";
import type { KeyState } from "./record.ts";
import { packRecord, type RecordMessage, recordCodec } from "./record-message.ts";
import type { StoredKey } from "./store.ts";
import type { KeyRecord } from "./tables.ts";

type StateChange = Partial<Pick<KeyRecord, "state" | "destroyAt">>;

/**
 * Disables an ACTIVE key.
 *
 * @throws the errors of `changeKey`; KEY_STATE_INVALID, KEY_DAMAGED
 */
export function disableKey(deps: ChangeDeps, input: ChangeInput): Promise<RecordMessage> {
  return moveKey(deps, input, "DISABLE", ["ACTIVE"], () => ({ state: "DISABLED" }));
}

/**
 * Enables a DISABLED key; a rotated key can then only verify.
 *
 * @throws the errors of `changeKey`; KEY_STATE_INVALID, KEY_DAMAGED
 */
export function enableKey(deps: ChangeDeps, input: ChangeInput): Promise<RecordMessage> {
  return moveKey(deps, input, "ENABLE", ["DISABLED"], ({ replacedBy }) => ({
    state: replacedBy === undefined ? "ACTIVE" : "ROTATED",
  }));
}

/**
 * Cancels a scheduled destruction that is not due.
 *
 * @throws the errors of `changeKey`; KEY_STATE_INVALID, KEY_DAMAGED
 */
export function restoreKey(deps: ChangeDeps, input: ChangeInput): Promise<RecordMessage> {
  return moveKey(deps, input, "RESTORE", ["DESTROY_SCHEDULED"], () => ({
    state: "DISABLED",
    destroyAt: undefined,
  }));
}

function moveKey(
  deps: ChangeDeps,
  input: ChangeInput,
  operation: "DISABLE" | "ENABLE" | "RESTORE",
  from: readonly KeyState[],
  choose: (record: KeyRecord) => StateChange,
): Promise<RecordMessage> {
  const { keys, now } = deps;
  const { principal } = input;
  return changeKey(deps, input, {
    operation,
    codec: recordCodec,
    priority: operation === "DISABLE" ? "safety" : "normal",
    findRefusal: (key) => {
      const isDue = key.record.destroyAt !== undefined && key.record.destroyAt <= now();
      if (from.includes(key.record.state) && key.isIntact && isDue) return destructionDue(key);
      return findStateRefusal(key, operation, from);
    },
    async apply(transaction, key) {
      const change = choose(key.record);
      const changed = await keys.change(transaction, key, change);
      const details = change.state === "ROTATED" ? enabledAsRotated : `stateBefore=${key.record.state}`;
      recordDone(transaction, principal, operation, subjectOf(key.record), details);
      return packRecord(changed, await findNameOf(deps, transaction, changed));
    },
  });
}

/** Reads the name of a key within a transaction. */
export async function findNameOf(
  { keys }: Pick<ChangeDeps, "keys">,
  transaction: WriteTransaction | undefined,
  { owner, name }: KeyRecord,
) {
  return name === undefined ? undefined : keys.names.find(owner, name, transaction);
}

/**
 * Returns the refusal to change a key that is damaged, or not in one of these states; undefined if it can be
 * changed.
 */
export function findStateRefusal(
  key: StoredKey,
  operation: ChangingOperation,
  from: readonly KeyState[],
): ConnectError | undefined {
  if (!key.isIntact) return keyDamaged(key.record.keyId);
  return from.includes(key.record.state) ? undefined : keyStateInvalid(key.record, operation);
}

function destructionDue({ record: { keyId } }: StoredKey): ConnectError {
  return refuse("KEY_STATE_INVALID", `the destruction of key ${keyId} is due; it cannot be restored`, {
    keyId,
    state: "DESTROY_SCHEDULED",
    operation: "RESTORE",
  });
}

export interface Destroyed {
  readonly keyId: string;
  readonly newStatus: "DESTROYED" | "DESTROY_SCHEDULED";
  /** Milliseconds since 1970; undefined if the key is destroyed. */
  readonly destroyAtMs: number | undefined;
}

export interface DestroyInput extends ChangeInput {
  /** Waiting period in seconds; 0 to destroy the key immediately. */
  readonly afterSeconds: number;
}

/** States from which a destruction can be scheduled. */
const schedulable: readonly KeyState[] = ["ACTIVE", "ROTATED", "DISABLED"];

/**
 * Destroys a key: erases its secret half permanently, immediately or when its waiting period ends.
 *
 * @throws the errors of `changeKey`; KEY_STATE_INVALID
 */
export function destroyKey(deps: ChangeDeps, input: DestroyInput): Promise<Destroyed> {
  const { principal, afterSeconds } = input;
  const kind = { codec: destroyedCodec, priority: "safety" } as const;
  if (afterSeconds === 0)
    return changeKey(deps, input, { operation: "DESTROY", ...kind, ...destruction(deps, principal) });
  return changeKey(deps, input, {
    operation: "SCHEDULE_DESTROY",
    ...kind,
    findRefusal: (key) => findStateRefusal(key, "SCHEDULE_DESTROY", schedulable),
    async apply(transaction, key) {
      const destroyAt = new Date(deps.now().getTime() + afterSeconds * 1000);
      await deps.keys.change(transaction, key, { state: "DESTROY_SCHEDULED", destroyAt });
      const details = `stateBefore=${key.record.state}, destroyAt=${destroyAt.toISOString()}`;
      recordDone(transaction, principal, "SCHEDULE_DESTROY", subjectOf(key.record), details);
      return { keyId: key.record.keyId, newStatus: "DESTROY_SCHEDULED", destroyAtMs: destroyAt.getTime() };
    },
  });
}

/** Destroys a key that is not destroyed yet. A damaged key can be destroyed too, once. */
export function destruction({ keys }: Pick<ChangeDeps, "keys">, actor: Actor): Change<Destroyed> {
  return {
    findRefusal: (key) => {
      const isDestroyed = key.record.state === "DESTROYED" && key.loggedState === "DESTROYED";
      return isDestroyed ? keyStateInvalid(key.record, "DESTROY") : undefined;
    },
    async apply(transaction, key) {
      await keys.change(transaction, key, { state: "DESTROYED", destroyAt: undefined });
      recordDone(transaction, actor, "DESTROY", subjectOf(key.record), `stateBefore=${key.record.state}`);
      return { keyId: key.record.keyId, newStatus: "DESTROYED", destroyAtMs: undefined };
    },
  };
}

const destroyedCodec: AnswerCodec<Destroyed> = {
  encode: (destroyed) => new TextEncoder().encode(JSON.stringify(destroyed)),
  decode: (bytes) => {
    const { keyId, newStatus, destroyAtMs }: Destroyed = JSON.parse(new TextDecoder().decode(bytes));
    return { keyId, newStatus, destroyAtMs };
  },
};

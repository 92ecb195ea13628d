/** Refusals that several calls share: what is wrong with a key, and what to do instead. */
import type { ConnectError } from "@connectrpc/connect";
import { operationsOf } from "../../crypto/key-uses.ts";
import { refuse } from "../../errors.ts";
import type { Operation } from "./event.ts";
import type { KeyState } from "./record.ts";
import type { KeyRecord } from "./tables.ts";

/** For a key that does not exist, or that the caller may not see. */
export function keyNotFound(handle: string): ConnectError {
  return refuse("KEY_NOT_FOUND", `key ${handle} does not exist`, { keyId: handle });
}

/** For a key whose record or secret half was changed in the store. */
export function keyDamaged(keyId: string, cause?: unknown): ConnectError {
  const error = refuse(
    "KEY_DAMAGED",
    `the stored key ${keyId} was changed outside the server and cannot be used; restore it from a backup`,
    { keyId },
  );
  error.cause = cause;
  return error;
}

/**
 * For a key of the wrong algorithm for an operation.
 *
 * @param need continues "is an ML-KEM-768 key"
 */
export function keyUsageMismatch(
  { keyId, algorithm }: KeyRecord,
  need: string,
  more: Readonly<Record<string, string>> = {},
): ConnectError {
  const message = `key ${keyId} is an ${algorithm} key${need}`;
  return refuse("KEY_USAGE_MISMATCH", message, { keyId, algorithm, ...more });
}

/** Explanations for a change that has already happened, or cannot be undone. */
const sentences: Readonly<Record<string, string>> = {
  "ENABLE ACTIVE": "is already active",
  "DISABLE DISABLED": "is already disabled",
  "RESTORE DESTROYED": "was destroyed; its secret key cannot be restored",
};

/** For a key whose state does not allow an operation; the message names a remedy. */
export function keyStateInvalid(record: KeyRecord, operation: Operation): ConnectError {
  const { keyId, state, replacedBy } = record;
  const advice = adviseInstead(record, operation);
  return refuse(
    "KEY_STATE_INVALID",
    `key ${keyId} ${sentences[`${operation} ${state}`] ?? `is ${state} and does not allow ${operation}`}${advice && `; ${advice}`}`,
    { keyId, state, operation, ...(replacedBy && { replacedBy }) },
  );
}

/** Returns advice for a refused use; empty if no alternative exists. */
function adviseInstead({ state, replacedBy }: KeyRecord, operation: Operation): string {
  // The replacement creates new signatures and secrets, but cannot verify signatures or recover secrets of
  // this key.
  if (replacedBy && ["SIGN", "ENCAPSULATE", "ENCRYPT"].includes(operation)) return `use ${replacedBy}`;
  const uses: readonly string[] = [...Object.values(operationsOf).flat(), "RE_ENCRYPT"];
  if (!uses.includes(operation)) return "";
  const revival: Partial<Record<KeyState, string>> = {
    DISABLED: "enable it",
    DESTROY_SCHEDULED: "restore and enable it",
  };
  const publicKey = operation === "VERIFY" ? "verify with its public key, which GetKey returns" : "";
  return [revival[state] ?? "", publicKey].filter((part) => part !== "").join(", or ");
}

/** The refusals that several calls share: what is wrong with a key, and what to do instead. */
import type { ConnectError } from "@connectrpc/connect";
import { refuse } from "../../errors.ts";
import type { Operation } from "./event.ts";
import type { KeyState } from "./record.ts";
import type { KeyRecord } from "./tables.ts";

/** The refusal for a key that does not exist, or that the caller may not know of. */
export function keyNotFound(handle: string): ConnectError {
  return refuse("KEY_NOT_FOUND", `key ${handle} does not exist`, { keyId: handle });
}

/** The refusal for a key whose record or secret half was changed in the store. */
export function keyDamaged(keyId: string, cause?: unknown): ConnectError {
  const error = refuse(
    "KEY_DAMAGED",
    `the stored key ${keyId} was changed outside the server and cannot be used; restore it from a backup`,
    { keyId },
  );
  error.cause = cause;
  return error;
}

/** The refusal for a key of another algorithm than an operation needs. @param need continues "is an ML-KEM-768 key" */
export function keyUsageMismatch(
  { keyId, algorithm }: KeyRecord,
  need: string,
  more: Readonly<Record<string, string>> = {},
): ConnectError {
  const message = `key ${keyId} is an ${algorithm} key${need}`;
  return refuse("KEY_USAGE_MISMATCH", message, { keyId, algorithm, ...more });
}

/** What else there is to say of a change that has happened, or cannot be undone. */
const sentences: Readonly<Record<string, string>> = {
  "ENABLE ACTIVE": "is already active",
  "DISABLE DISABLED": "is already disabled",
  "RESTORE DESTROYED": "was destroyed; its secret key cannot be restored",
};

/** The refusal for a key whose state does not allow an operation; says what does. */
export function keyStateInvalid(record: KeyRecord, operation: Operation): ConnectError {
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

/** The entries of the key service in the audit log. */
import type { AuditContext, AuditEvent } from "../../audit/chain.ts";
import { excerpt } from "../../errors/shorten.ts";
import type { Principal } from "../../records/ownership.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import type { KeyState } from "./record.ts";

/** The state of a key after each operation that changes it. An ENABLE of a rotated key says so in its details. */
export const statesAfter = {
  CREATE: "ACTIVE",
  IMPORT: "ACTIVE",
  ROTATE: "ROTATED",
  DISABLE: "DISABLED",
  ENABLE: "ACTIVE",
  SCHEDULE_DESTROY: "DESTROY_SCHEDULED",
  RESTORE: "DISABLED",
  DESTROY: "DESTROYED",
} as const satisfies Record<string, KeyState>;

/** An operation that changes the state of a key. */
export type ChangingOperation = keyof typeof statesAfter;

/** The operations that the audit log records. */
export type Operation =
  | ChangingOperation
  | "SIGN"
  | "VERIFY"
  | "ENCAPSULATE"
  | "DECAPSULATE"
  | "GET_KEY"
  | "CREATE_NAME"
  | "UPDATE_NAME"
  | "CREATE_IMPORT"
  | "CREATE_GRANT"
  | "REVOKE_GRANT";

/** The details of the ENABLE of a key that was rotated before it was disabled. */
export const enabledAsRotated = "newStatus=ROTATED";

/** Finds the state of a key after an operation; undefined if the operation does not change it. */
export function findStateAfter(operation: string, details: string): KeyState | undefined {
  if (!Object.hasOwn(statesAfter, operation)) return undefined;
  if (operation === "ENABLE" && details === enabledAsRotated) return "ROTATED";
  return statesAfter[operation as ChangingOperation];
}

/** An operation that was done or refused. */
export interface KeyEvent extends AuditEvent, AuditContext {
  readonly operation: Operation;
}

/** The subject of an entry: the ID of a key, its owner, and its name. */
export type Subject = Pick<KeyEvent, "keyId" | "owner" | "keyName">;

/** The subject of entries about a key. */
export function subjectOf({
  keyId,
  owner,
  name = "",
}: Pick<Subject, "keyId" | "owner"> & { readonly name: string | undefined }): Subject {
  return { keyId, owner, keyName: name };
}

/** The subject of entries about something that does not exist: what the caller sent, up to 100 characters of it. */
export function unknownSubject(sent: string): Subject {
  return { keyId: excerpt(sent), owner: "", keyName: "" };
}

/** Whom an entry names: the caller, or the schedule. */
export type Actor = Pick<Principal, "user" | "clientAddress" | "requestId">;

/** Writes an entry about an operation. */
export function eventBy(
  { user, clientAddress = "", requestId = "" }: Actor,
  subject: Subject,
  event: Pick<KeyEvent, "operation" | "outcome" | "details">,
): KeyEvent {
  return { ...subject, ...event, user, clientAddress, requestId };
}

/** Records in a transaction what was done. */
export function recordDone(
  { audit }: Pick<WriteTransaction, "audit">,
  actor: Actor,
  operation: Operation,
  subject: Subject,
  details: string,
): void {
  audit(eventBy(actor, subject, { operation, outcome: "OK", details }));
}

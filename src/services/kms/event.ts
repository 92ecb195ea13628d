/** The key service's audit log entries. */
import type { AuditContext, AuditEvent } from "../../audit/chain.ts";
import { excerpt } from "../../errors/shorten.ts";
import type { Principal } from "../../records/ownership.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import type { KeyState } from "./record.ts";

/**
 * State of a key after each operation that changes it. An ENABLE of a rotated key has the new state in its
 * details.
 */
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

export type ChangingOperation = keyof typeof statesAfter;

/** Operations that the audit log records. */
export type Operation =
  | ChangingOperation
  | "SIGN"
  | "VERIFY"
  | "ENCAPSULATE"
  | "DECAPSULATE"
  | "ENCRYPT"
  | "DECRYPT"
  | "RE_ENCRYPT"
  | "GET_KEY"
  | "CREATE_NAME"
  | "UPDATE_NAME"
  | "CREATE_IMPORT"
  | "CREATE_GRANT"
  | "REVOKE_GRANT";

/** First detail of an ENABLE entry for a key that was rotated before it was disabled. */
export const enabledAsRotated = "newStatus=ROTATED";

/**
 * Returns the state of a key after an operation; undefined if the operation does not change it.
 *
 * @param detail the first detail of its entry
 */
export function findStateAfter(operation: string, detail: string): KeyState | undefined {
  if (!Object.hasOwn(statesAfter, operation)) return undefined;
  if (operation === "ENABLE" && detail === enabledAsRotated) return "ROTATED";
  return statesAfter[operation as ChangingOperation];
}

/** An operation that was performed or refused. */
export interface KeyEvent extends AuditEvent, AuditContext {
  readonly operation: Operation;
}

/** What an entry is about: a key's ID, owner and name. */
export type Subject = Pick<KeyEvent, "keyId" | "owner" | "keyName">;

export function subjectOf({
  keyId,
  owner,
  name = "",
}: Pick<Subject, "keyId" | "owner"> & { readonly name: string | undefined }): Subject {
  return { keyId, owner, keyName: name };
}

/** Subject of entries about something that does not exist: up to 100 characters of what the caller sent. */
export function unknownSubject(sent: string): Subject {
  return { keyId: excerpt(sent), owner: "", keyName: "" };
}

/** Who acts in an entry: the caller, or the schedule; and for whom, if not for themselves. */
export type Actor = Pick<Principal, "user" | "actsFor" | "access" | "clientAddress" | "requestId">;

/** Builds the audit event for an operation. Whom it was done for, and the client and ID of an access token, follow its details. */
export function eventBy(
  { user, actsFor, access, clientAddress = "", requestId = "" }: Actor,
  subject: Subject,
  event: Pick<KeyEvent, "operation" | "outcome" | "details">,
): KeyEvent {
  const details = [
    event.details,
    ...(actsFor === undefined ? [] : [`for=${actsFor}`]),
    ...(access === undefined ? [] : [`client=${access.clientId}`, `token=${access.tokenId}`]),
  ].join(", ");
  return { ...subject, ...event, details, user, clientAddress, requestId };
}

/** Records a performed operation, within its transaction. */
export function recordDone(
  { audit }: Pick<WriteTransaction, "audit">,
  actor: Actor,
  operation: Operation,
  subject: Subject,
  details: string,
): void {
  audit(eventBy(actor, subject, { operation, outcome: "OK", details }));
}

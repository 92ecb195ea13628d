/** What callers attempt with keys, and the entries of the audit log about what is refused. */
import { Code, ConnectError } from "@connectrpc/connect";
import { explainAbort, findCoreReason, type ReasonName } from "../../errors.ts";
import { IdempotencyConflictError } from "../../records/idempotency.ts";
import type { Principal } from "../../records/ownership.ts";
import { QuotaExceededError } from "../../records/quota.ts";
import { type Actor, eventBy, type KeyEvent, type Operation, type Subject, unknownSubject } from "./event.ts";
import type { KmsStore } from "./store.ts";

/** A key as a caller names it, and the caller. */
export interface KeyInput {
  /** As the caller sent it: an ID or a name. Other calls name a grant or an import token. */
  readonly handle: string;
  readonly principal: Principal;
  /** Aborts when the caller disconnects or stops waiting. */
  readonly signal: AbortSignal;
}

/** An operation that a caller attempts. */
export interface Attempt extends KeyInput {
  readonly operation: Operation;
  /**
   * What the entry about a refusal is about: what the caller sent, until the key is found. The owner of a key sees who
   * tried to use it.
   */
  subject: Subject;
}

/** Begins an attempt, before anything is found. */
export function beginAttempt(operation: Operation, { handle, principal, signal }: KeyInput): Attempt {
  return { operation, handle, principal, signal, subject: unknownSubject(handle) };
}

/** Runs an attempt, and records in the audit log if it is refused. */
export async function recordingRefusal<T>(
  { keys }: { readonly keys: KmsStore },
  attempt: Attempt,
  run: () => Promise<T>,
): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const reason = reasonToRecord(error, attempt.signal);
    const { principal, subject, operation } = attempt;
    if (reason !== undefined) await keys.recordRefusal(refusalBy(principal, subject, operation, reason));
    throw error;
  }
}

/** Finds the reason to record. @returns undefined for a fault of the server, and for a refusal because of load */
function reasonToRecord(error: unknown, signal: AbortSignal): ReasonName | undefined {
  if (error instanceof IdempotencyConflictError) return "IDEMPOTENCY_KEY_REUSED";
  if (error instanceof QuotaExceededError) return "QUOTA_EXCEEDED";
  if (!(error instanceof ConnectError)) return undefined;
  const explained = explainAbort(error, signal);
  const reason = findCoreReason(explained);
  return isAboutLoad(explained.code) && reason !== "BODY_TOO_LARGE" ? undefined : reason;
}

/** Tells whether a refusal says nothing about the key and its caller. Under load there are many, all alike. */
function isAboutLoad(code: Code): boolean {
  return [Code.ResourceExhausted, Code.DeadlineExceeded, Code.Canceled, Code.Unavailable].includes(code);
}

/** Describes a refused operation. */
export function refusalBy(
  actor: Actor,
  subject: Subject,
  operation: Operation,
  reason: ReasonName,
): KeyEvent {
  return eventBy(actor, subject, { operation, outcome: "REFUSED", details: `reason=${reason}` });
}

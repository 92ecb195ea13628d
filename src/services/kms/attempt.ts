/** Attempts to use or change keys, and audit log entries for refused attempts. */
import { Code, ConnectError } from "@connectrpc/connect";
import { explainAbort, findCoreReason, type ReasonName } from "../../errors.ts";
import { IdempotencyConflictError } from "../../records/idempotency.ts";
import type { Principal } from "../../records/ownership.ts";
import { QuotaExceededError } from "../../records/quota.ts";
import { type Actor, eventBy, type KeyEvent, type Operation, type Subject, unknownSubject } from "./event.ts";
import type { KmsStore } from "./store.ts";

/** A caller and the key that the caller named. */
export interface KeyInput {
  /** Handle as the caller sent it: an ID or a name. Some calls name a grant or an import token instead. */
  readonly handle: string;
  readonly principal: Principal;
  /** Aborts when the caller disconnects or stops waiting. */
  readonly signal: AbortSignal;
}

/** An operation that a caller attempts. */
export interface Attempt extends KeyInput {
  readonly operation: Operation;
  /** The operation that a grant must include; `operation` if left out. */
  readonly needs?: Operation;
  /**
   * Subject of the entry for a refusal: what the caller sent, until the key is found. Then the key's owner
   * can see who tried to use it.
   */
  subject: Subject;
}

/** Starts an attempt, before any lookup. */
export function beginAttempt(operation: Operation, { handle, principal, signal }: KeyInput): Attempt {
  return { operation, handle, principal, signal, subject: unknownSubject(handle) };
}

/** Runs an attempt, and records a refusal in the audit log. */
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

/**
 * Finds the reason to record.
 *
 * @returns undefined for a server fault, and for a refusal because of load
 */
function reasonToRecord(error: unknown, signal: AbortSignal): ReasonName | undefined {
  if (error instanceof IdempotencyConflictError) return "IDEMPOTENCY_KEY_REUSED";
  if (error instanceof QuotaExceededError) return "QUOTA_EXCEEDED";
  if (!(error instanceof ConnectError)) return undefined;
  const explained = explainAbort(error, signal);
  const reason = findCoreReason(explained);
  return isAboutLoad(explained.code) && reason !== "BODY_TOO_LARGE" ? undefined : reason;
}

/**
 * Returns whether a refusal reveals nothing about the key or caller. Under load, many identical ones occur.
 */
function isAboutLoad(code: Code): boolean {
  return [Code.ResourceExhausted, Code.DeadlineExceeded, Code.Canceled, Code.Unavailable].includes(code);
}

/** Builds the audit event for a refused operation. */
export function refusalBy(
  actor: Actor,
  subject: Subject,
  operation: Operation,
  reason: ReasonName,
): KeyEvent {
  return eventBy(actor, subject, { operation, outcome: "REFUSED", details: `reason=${reason}` });
}

/** What callers know about the life cycle of their keys, and what the audit log says about it. */
import { ConnectError } from "@connectrpc/connect";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { move, moves, type State } from "../services/kms/key-states.ts";
import { describeRefusal } from "../support/refusal.ts";

/** A version of a name, as last acknowledged. */
export interface Version {
  readonly keyId: string;
  state: State;
  wasRotated: boolean;
  /** Due time of its destruction. */
  destroyAtMs: number | undefined;
  /** Signatures: at least as many as were answered, at most as many as were requested. */
  readonly signed: { least: number; most: number };
}

/** A name that only one caller uses, one call at a time. */
export interface Line {
  readonly name: string;
  versions: Version[];
  /** The unanswered call, which may have changed more than was acknowledged. */
  pending: { readonly operation: string; readonly version?: Version } | undefined;
  /** Whether the name was used since the last check. */
  isTouched: boolean;
}

/** Everything that the callers of one store know. */
export interface Lives {
  /** By name. */
  readonly lines: Map<string, Line>;
  /** By ID. */
  readonly grants: Map<string, "granted" | "unknown" | "revoked">;
  /** Grants that were requested and have no answer. */
  grantsAsked: number;
  /** Failed calls that the state of the key does not explain. */
  readonly failures: { readonly sentence: string; readonly atMs: number }[];
  /** Answers that cannot be true. */
  readonly contradictions: string[];
  /** Operations that were answered or, with _REFUSED, rightly refused. */
  readonly happened: Set<string>;
}

export function createLives(): Lives {
  return {
    lines: new Map(),
    grants: new Map(),
    grantsAsked: 0,
    failures: [],
    contradictions: [],
    happened: new Set(),
  };
}

export function newVersion(keyId: string): Version {
  const signed = { least: 0, most: 0 };
  return { keyId, state: "ACTIVE", wasRotated: false, destroyAtMs: undefined, signed };
}

/** Result of a call: an answer, a refusal with its reason, or neither. */
export type Outcome<Answer> =
  | { readonly answer: Answer; readonly reason?: undefined }
  | { readonly answer?: undefined; readonly reason: string | undefined };

/**
 * Makes a call.
 *
 * @param allowed reasons that the service may refuse it for
 */
export async function attempt<Answer>(
  lives: Lives,
  operation: string,
  allowed: readonly string[],
  call: () => Promise<Answer>,
): Promise<Outcome<Answer>> {
  try {
    const answer = await call();
    lives.happened.add(operation);
    return { answer };
  } catch (thrown) {
    const { code, reason } = describeRefusal(ConnectError.from(thrown));
    if (reason !== undefined && allowed.includes(reason)) {
      lives.happened.add(`${operation}_REFUSED`);
      return { reason };
    }
    const sentence = `${operation} failed with ${code} ${reason}`;
    lives.failures.push({ sentence, atMs: performance.now() });
    return { reason: undefined };
  }
}

/** What the log says about one key. */
export interface Logged {
  state: State;
  wasRotated: boolean;
  signed: number;
  /** Due time of the last schedule. */
  destroyAtMs: number | undefined;
  destructions: { readonly user: string; readonly atMs: number; readonly dueMs: number | undefined }[];
}

/** Follows each key through its entries. Returns its history, and the entries that its state did not allow. */
export function replay(entries: readonly AuditEntry[]): {
  readonly logged: Map<string, Logged>;
  readonly forbidden: string[];
} {
  const logged = new Map<string, Logged>();
  const forbidden: string[] = [];
  for (const entry of entries) {
    if (entry.outcome !== "OK") continue;
    if (["CREATE", "IMPORT"].includes(entry.operation)) {
      if (logged.has(entry.keyId)) forbidden.push(`${entry.keyId} was created twice`);
      const fresh = { wasRotated: false, signed: 0, destroyAtMs: undefined, destructions: [] };
      logged.set(entry.keyId, { state: "ACTIVE", ...fresh });
      continue;
    }
    const key = logged.get(entry.keyId);
    if (key !== undefined) forbidden.push(...follow(key, entry));
  }
  return { logged, forbidden };
}

function follow(key: Logged, { operation, keyId, sequence, user, details, timestamp }: AuditEntry): string[] {
  const sentence = `${keyId}: ${operation} at ${sequence} while ${key.state}`;
  if (operation === "SIGN") {
    key.signed += 1;
    return key.state === "ACTIVE" ? [] : [sentence];
  }
  if (moves[operation] === undefined) return [];
  const next = move(key.state, operation, key.wasRotated);
  if (operation === "DESTROY") {
    const atMs = Number(timestamp?.seconds ?? 0) * 1000 + (timestamp?.nanos ?? 0) / 1e6;
    key.destructions.push({ user, atMs, dueMs: key.destroyAtMs });
  }
  const due = /destroyAt=(\S+)/.exec(details)?.[1];
  key.destroyAtMs = due === undefined ? undefined : Date.parse(due);
  key.wasRotated ||= operation === "ROTATE";
  key.state = next ?? key.state;
  return next === undefined ? [sentence] : [];
}

/** What callers know about the life cycle of their keys, and what the audit log says about it. */
import { ConnectError } from "@connectrpc/connect";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { move, moves, type State } from "../services/kms/key-states.ts";
import { describeRefusal } from "../support/refusal.ts";
import type { KmsClient } from "./kms-server.ts";

/** How often an operation happened: at least as often as acknowledged, at most as often as requested. */
export interface Count {
  least: number;
  most: number;
}

/** A version of a name, as last acknowledged. */
export interface Version {
  readonly keyId: string;
  readonly publicKey?: Uint8Array | undefined;
  state: State;
  wasRotated: boolean;
  /** Due time of its destruction. */
  destroyAtMs: number | undefined;
  readonly signed: Count;
  readonly verified: Count;
  /** One of the acknowledged signatures. */
  signature?: Uint8Array | undefined;
}

/** A name that only one caller uses, one call at a time. */
export interface Line {
  readonly name: string;
  versions: Version[];
  /** The unanswered call, which may have changed more than was acknowledged. */
  pending: { readonly operation: string; readonly version?: Version } | undefined;
  /** The last request with an idempotency key, and the key that it returned; undefined if it was not answered. */
  again?: { readonly send: (kms: KmsClient) => Promise<KeyRecord>; keyId: string | undefined } | undefined;
  /** Whether the name was used since the last check. */
  isTouched: boolean;
}

/** A failed call that the state of the key does not explain. */
export interface Failure {
  readonly operation: string;
  readonly code: string;
  readonly reason: string | undefined;
  /** In milliseconds of performance.now(). */
  readonly startedMs: number;
  readonly endedMs: number;
}

/** Everything that the callers of one store know. */
export type Lives = ReturnType<typeof createLives>;

/** How the names begin for which several callers compete. */
export const contested = "contested/";

export function createLives() {
  return {
    /** By name. */
    lines: new Map<string, Line>(),
    /** By ID. */
    grants: new Map<string, "granted" | "unknown" | "revoked">(),
    /** Grants that were requested and have no answer. */
    grantsAsked: 0,
    failures: [] as Failure[],
    /** Answers that cannot be true. */
    contradictions: [] as string[],
    /** Operations that were answered or, with _REFUSED, rightly refused. */
    happened: new Set<string>(),
  };
}

export function newVersion({ keyId, publicKey }: Pick<Version, "keyId" | "publicKey">): Version {
  return {
    ...{ keyId, publicKey, state: "ACTIVE", wasRotated: false, destroyAtMs: undefined },
    ...{ signed: { least: 0, most: 0 }, verified: { least: 0, most: 0 } },
  };
}

/** Lists the different kinds of failures. */
export function listKinds({ failures }: Lives): unknown[] {
  const kinds = new Set(failures.map(({ code, reason }) => JSON.stringify({ code, reason })));
  return [...kinds].map((kind) => JSON.parse(kind));
}

/** Result of a call. */
export interface Outcome<Answer> {
  readonly answer?: Answer;
  /** Whether the call certainly changed nothing. */
  readonly isRefused: boolean;
  readonly isAnswered: boolean;
}

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
  const startedMs = performance.now();
  try {
    const answer = await call();
    lives.happened.add(operation);
    return { answer, isRefused: false, isAnswered: true };
  } catch (thrown) {
    const { code, reason } = describeRefusal(ConnectError.from(thrown));
    if (reason !== undefined && allowed.includes(reason)) {
      lives.happened.add(`${operation}_REFUSED`);
      return { isRefused: true, isAnswered: true };
    }
    lives.failures.push({ operation, code, reason, startedMs, endedMs: performance.now() });
    return { isRefused: reason === "STORE_FULL", isAnswered: false };
  }
}

/** What the log says about one key. */
export interface Logged {
  state: State;
  wasRotated: boolean;
  signed: number;
  verified: number;
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
      const fresh = { wasRotated: false, signed: 0, verified: 0, destroyAtMs: undefined, destructions: [] };
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
  if (operation === "VERIFY") key.verified += 1;
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

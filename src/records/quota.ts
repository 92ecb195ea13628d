/** Quotas: how much of the shared store one owner may use. */
import type { Reader } from "../database/database.ts";
import { readCount } from "./list-counts.ts";
import { listSeenBy } from "./ownership.ts";

/** Limits per owner; 0 means no limit. */
export interface QuotaLimits {
  /** Records of each kind, such as keys or blocks. */
  readonly records: number;
  readonly tunnels: number;
  /** Idempotency keys of the last 24 hours. */
  readonly idempotencyKeys: number;
}

/** No limits: for commands that an operator runs. */
export const noLimits: QuotaLimits = { records: 0, tunnels: 0, idempotencyKeys: 0 };

/** A list in which each owner may keep a limited number of rows. list-counts.ts counts them per owner. */
export interface Quota {
  readonly list: string;
  /** What is counted, in the plural. */
  readonly noun: string;
  readonly kind: keyof QuotaLimits;
}

export function recordQuota(list: string, noun: string): Quota {
  return { list, noun, kind: "records" };
}

/** The setting behind each limit, and how an owner can free room. */
const explanations = {
  records: { setting: "--max-records-per-user", remedy: "" },
  tunnels: { setting: "--max-tunnels-per-user", remedy: "disconnect unused tunnels, or " },
  idempotencyKeys: {
    setting: "--max-idempotency-keys-per-user",
    remedy: "wait until 24 hours after the first key, call without a key, or ",
  },
} as const satisfies Record<keyof QuotaLimits, { setting: string; remedy: string }>;

/** An owner has used up a quota. */
export class QuotaExceededError extends Error {
  /** What the quota counts. */
  readonly noun: string;
  readonly limit: number;
  /** The limit's setting, as a flag. */
  readonly setting: string;

  constructor({ noun, limit, setting, remedy }: Omit<QuotaExceededError, keyof Error> & { remedy: string }) {
    super(`your quota of ${limit} ${noun} is used up; ${remedy}ask the operator to raise ${setting}`);
    this.noun = noun;
    this.limit = limit;
    this.setting = setting;
  }
}

/**
 * Checks that an owner has room. Within the write transaction the answer is exact, because only one
 * transaction writes at a time. Called earlier, the check saves the cost of a key pair and a transaction for
 * a caller without room.
 *
 * @param added the number of rows to add
 * @throws QuotaExceededError
 */
export async function requireRoom(
  db: Reader,
  limits: QuotaLimits,
  { list, noun, kind }: Quota,
  owner: string,
  added = 1,
): Promise<void> {
  const limit = limits[kind];
  if (limit === 0) return;
  const count = await readCount(db, listSeenBy({ owner }, list));
  if (count + added > limit) throw new QuotaExceededError({ noun, limit, ...explanations[kind] });
}

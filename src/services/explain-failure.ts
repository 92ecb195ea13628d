/** Translates errors from lower layers into refusals for callers. */
import type { ConnectError } from "@connectrpc/connect";
import { suggestAlgorithm } from "../crypto/suggest-algorithm.ts";
import { CryptoBusyError } from "../crypto/work-queue.ts";
import { RecordDamagedError, StoreFailureError } from "../database/store-error.ts";
import { refuse, refuseForNow } from "../errors.ts";
import { IdempotencyConflictError } from "../records/idempotency.ts";
import { QuotaExceededError } from "../records/quota.ts";

/** Returns the refusal for a known error, or undefined. The refusal's cause is for the log. */
export function explainFailure(thrown: unknown): ConnectError | undefined {
  if (thrown instanceof IdempotencyConflictError) {
    const { idempotencyKey, message } = thrown;
    return refuse("IDEMPOTENCY_KEY_REUSED", message, { idempotencyKey });
  }
  if (thrown instanceof RecordDamagedError) {
    const error = refuse("RECORD_DAMAGED", thrown.message, { record: thrown.record });
    error.cause = thrown.cause;
    return error;
  }
  if (thrown instanceof QuotaExceededError) {
    const { noun, limit, setting, message } = thrown;
    return refuse("QUOTA_EXCEEDED", message, { quota: noun, limit: String(limit), setting });
  }
  if (thrown instanceof CryptoBusyError) {
    return refuseForNow("SERVER_BUSY", `${thrown.message}; try again later`, thrown.retryMs);
  }
  if (!(thrown instanceof StoreFailureError)) return undefined;
  const error =
    thrown.code === "UNAVAILABLE"
      ? refuseForNow("STORE_UNAVAILABLE", thrown.message, storeRetryMs)
      : refuse(storeReasons[thrown.code], thrown.message);
  error.cause = thrown.cause;
  return error;
}

/** What callers receive for failures and invalid values. */
export const explanations = { explainFailure, hintValue: suggestAlgorithm };

/** Retry delay for calls that could not reach the store. */
const storeRetryMs = 1000;

const storeReasons = {
  FULL: "STORE_FULL",
  CORRUPT: "STORE_DAMAGED",
  LOCKED: "MASTER_KEY_MISSING",
} as const;

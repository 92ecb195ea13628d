/** Says to callers what the modules below the services throw. */
import type { ConnectError } from "@connectrpc/connect";
import { CryptoBusy } from "../crypto/work-queue.ts";
import { RecordDamaged, StoreFailure } from "../database/store-error.ts";
import { refuse, refuseForNow } from "../errors.ts";
import { OnceConflict } from "../records/idempotency.ts";
import { QuotaExceeded } from "../records/quota.ts";

/** Makes refusals of what the store throws; the cause is for the log. */
export function explainFailure(thrown: unknown): ConnectError | undefined {
  if (thrown instanceof OnceConflict) {
    const { idempotencyKey, message } = thrown;
    return refuse("IDEMPOTENCY_KEY_REUSED", message, { idempotencyKey });
  }
  if (thrown instanceof RecordDamaged) {
    const error = refuse("RECORD_DAMAGED", thrown.message, { record: thrown.record });
    error.cause = thrown.cause;
    return error;
  }
  if (thrown instanceof QuotaExceeded) {
    const { noun, limit, setting, message } = thrown;
    return refuse("QUOTA_EXCEEDED", message, { quota: noun, limit: String(limit), setting });
  }
  if (thrown instanceof CryptoBusy) {
    return refuseForNow("SERVER_BUSY", `${thrown.message}; try again later`, thrown.retryMs);
  }
  if (!(thrown instanceof StoreFailure)) return undefined;
  const error =
    thrown.code === "UNAVAILABLE"
      ? refuseForNow("STORE_UNAVAILABLE", thrown.message, storeRetryMs)
      : refuse(storeReasons[thrown.code], thrown.message);
  error.cause = thrown.cause;
  return error;
}

/** Milliseconds after which a call is worth repeating that the store could not be reached for. */
const storeRetryMs = 1000;

const storeReasons = {
  FULL: "STORE_FULL",
  CORRUPT: "STORE_DAMAGED",
  LOCKED: "MASTER_KEY_MISSING",
} as const;

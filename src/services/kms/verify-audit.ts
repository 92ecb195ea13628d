/** Verifies the audit log for callers. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type {
  VerifyAuditLogResponseSchema,
  WatchAuditVerificationResponseSchema,
} from "#gen/kms/kms_service_pb.ts";
import { keyLog } from "../../audit/tables.ts";
import { createCallerMutex } from "../../calls/caller-mutex.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import type { Store } from "../../store/store.ts";
import { packCheckpoint } from "../entry-log.ts";
import { shareVerifications } from "../shared-verifications.ts";
import type { AuditLogVerification, LogVerification } from "../verify-logs.ts";

export interface AuditVerificationDeps extends Pick<LogVerification, "verifyAudit"> {
  readonly store: Store;
  readonly provider: CryptoProvider;
  readonly now: () => Date;
}

export type AuditVerifications = ReturnType<typeof createAuditVerifications>;

/** Maximum number of entries that are all verified even if an earlier verification covers some. */
const maxWholeEntries = 1_000_000;

/** Creates a server's verifications, which run one at a time. */
export function createAuditVerifications({ store, provider, now, verifyAudit }: AuditVerificationDeps) {
  // Callers share a verification, so it must not end with the one who came first.
  const { system } = provider;
  const runExclusively = createCallerMutex();
  const share = (wholeUpTo?: number) =>
    shareVerifications(runExclusively, (options) =>
      verifyAudit(store, system, { ...options, wholeUpTo, now }),
    );
  return {
    /** Verifies all entries. */
    whole: share(),
    /** In a long log, continues where the last verification ended. */
    continued: share(maxWholeEntries),
  };
}

/** Entries between progress reports. */
const reportedEntries = 50_000;

/** Verifies all entries. Yields progress and, at the end, the result. */
export async function* watchVerification(
  { whole }: AuditVerifications,
  store: Store,
  callSignal: AbortSignal,
): AsyncGenerator<MessageInitShape<typeof WatchAuditVerificationResponseSchema>> {
  // Also ends the wait of a caller who stops reading.
  const leaving = new AbortController();
  const signal = AbortSignal.any([callSignal, leaving.signal]);
  let progress = { entriesVerified: 0, entriesTotal: 0 };
  let reported = 0;
  let news = Promise.withResolvers<void>();
  const onProgress = (entriesVerified: number, entriesTotal: number): void => {
    progress = { entriesVerified, entriesTotal };
    if (entriesVerified - reported >= reportedEntries) news.resolve();
  };
  let found: AuditLogVerification | undefined;
  const verifying = whole.wait({ signal, onProgress }).then((result) => {
    found = result;
  });
  // A caller who stops reading gets no error.
  verifying.catch(() => {});
  try {
    for (;;) {
      await Promise.race([verifying, news.promise]);
      if (found !== undefined) break;
      news = Promise.withResolvers();
      reported = progress.entriesVerified;
      yield progress;
    }
    const { entries } = found;
    yield {
      entriesVerified: entries,
      entriesTotal: entries,
      result: { ...packVerification(store, found), status: "success" },
    };
  } finally {
    leaving.abort();
  }
}

export function packVerification(
  store: Store,
  { checkpoint, firstBrokenSequence, continuedFrom, ...found }: AuditLogVerification,
): MessageInitShape<typeof VerifyAuditLogResponseSchema> {
  return {
    ...found,
    ...(firstBrokenSequence !== undefined && { firstBrokenSequence }),
    ...(checkpoint && { checkpoint: packCheckpoint(store, checkpoint, keyLog) }),
    ...(continuedFrom && { earlierVerifiedAt: timestampFromDate(continuedFrom) }),
  };
}

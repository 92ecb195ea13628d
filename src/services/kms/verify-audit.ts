/** Verifies the audit log for callers. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type {
  VerifyAuditLogResponseSchema,
  WatchAuditVerificationResponseSchema,
} from "#gen/kms/kms_service_pb.ts";
import { keyLog } from "../../audit/tables.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import type { Store } from "../../store/store.ts";
import { packCheckpoint } from "../entry-log.ts";
import { createLine, type SharedVerifications, shareVerifications } from "../shared-verifications.ts";
import type { AuditLogVerification, LogVerification } from "../verify-logs.ts";

/** The dependencies of verifications. */
export interface AuditVerificationDeps extends Pick<LogVerification, "verifyAudit"> {
  readonly store: Store;
  readonly provider: CryptoProvider;
  readonly now: () => Date;
}

/** The verifications of the audit log that run for callers. */
export interface AuditVerifications {
  /** Verifies all entries. */
  readonly whole: SharedVerifications<AuditLogVerification>;
  /** In a long log, continues from where the last verification ended. */
  readonly continued: SharedVerifications<AuditLogVerification>;
}

/** The largest log whose entries are all verified although an earlier verification vouches for some. */
const maxWholeEntries = 1_000_000;

/** Creates the verifications of a server, of which one runs at a time. */
export function createAuditVerifications({
  store,
  provider,
  now,
  verifyAudit,
}: AuditVerificationDeps): AuditVerifications {
  const line = createLine();
  const share = (wholeUpTo?: number) =>
    shareVerifications(line, (options) => verifyAudit(store, provider, { ...options, wholeUpTo, now }));
  return { whole: share(), continued: share(maxWholeEntries) };
}

/** Entries from one report of progress to the next. */
const reportedEntries = 50_000;

/** Verifies all entries. Yields how far it is, and at the end the result. */
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
  // A caller who stops reading is not told.
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

/** A verification as a message. */
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

/** Verifies logs: their entries, and the data that an extension derives from them. */
import type { AuditVerification } from "../audit/verification.ts";
import type { CryptoProvider } from "../crypto/provider.ts";
import type { Store } from "../store/store.ts";
import type { VerifyOptions } from "../store/store-log.ts";

export interface VerifyAuditOptions
  extends Pick<VerifyOptions, "outside" | "onProgress" | "signal" | "signsEnd"> {
  /**
   * Maximum number of entries for a full verification; unlimited if omitted. An extension may verify a longer
   * log from where the last verification ended.
   */
  readonly wholeUpTo?: number | undefined;
  readonly now?: () => Date;
}

export interface AuditLogVerification extends AuditVerification {
  /**
   * When the entries before `verifiedFrom` were last found valid; undefined if this verification read all
   * entries.
   */
  readonly continuedFrom: Date | undefined;
}

/** Result of comparing a log with the data that an extension derived from it. */
export interface DerivedVerification {
  readonly log: string;
  /** Number of signed checkpoints that agree with the log. */
  readonly checkpoints: number;
  /** First faulty entry, counted from 0, and a description for people; undefined if all entries agree. */
  readonly fault: { readonly leaf: number; readonly reason: string } | undefined;
}

export interface LogVerification {
  /** Verifies the entries of the audit log, its chain and its checkpoints, and the data derived from it. */
  verifyAudit(
    store: Store,
    provider: CryptoProvider,
    options?: VerifyAuditOptions,
  ): Promise<AuditLogVerification>;
  /**
   * Verifies the data derived from each log.
   *
   * @param onProgress called with the number of entries and the total
   */
  verifyDerived(
    store: Store,
    provider: CryptoProvider,
    onProgress: (checked: number, total: number) => void,
  ): Promise<readonly DerivedVerification[]>;
}

/** Verifies only the entries, all of them. */
export const entriesVerification: LogVerification = {
  async verifyAudit(store, _provider, { outside, onProgress, signal, signsEnd } = {}) {
    const { tree: _, ...found } = await store.verifyAudit({ outside, onProgress, signal, signsEnd });
    return { ...found, continuedFrom: undefined };
  },
  verifyDerived: async () => [],
};

/** The verification of logs: of their entries, and of what an extension derives from them. */
import type { AuditVerification } from "../audit/verification.ts";
import type { CryptoProvider } from "../crypto/provider.ts";
import type { Store } from "../store/store.ts";
import type { VerifyOptions } from "../store/store-log.ts";

/** The options of a verification of the audit log. */
export interface VerifyAuditOptions extends Pick<VerifyOptions, "outside" | "onProgress" | "signal"> {
  /**
   * The largest log whose entries are all verified; any if left out. An extension may verify a longer one from where the
   * last verification ended.
   */
  readonly wholeUpTo?: number | undefined;
  readonly now?: () => Date;
}

/** The result of a verification of the audit log. */
export interface AuditLogVerification extends AuditVerification {
  /** The time of the verification that the entries before `verifiedFrom` were valid in; undefined if all were verified now. */
  readonly continuedFrom: Date | undefined;
}

/** What an extension derived from a log, compared with the log. */
export interface DerivedVerification {
  readonly log: string;
  /** The signed checkpoints that agree with the log. */
  readonly checkpoints: number;
  /** The first entry with a fault, counted from 0, and the fault for a person; undefined if there is none. */
  readonly fault: { readonly leaf: number; readonly reason: string } | undefined;
}

/** Verifies logs. */
export interface LogVerification {
  /** Verifies the entries of the audit log, its chain and its checkpoints, and what is derived from it. */
  verifyAudit(
    store: Store,
    provider: CryptoProvider,
    options?: VerifyAuditOptions,
  ): Promise<AuditLogVerification>;
  /** Verifies what is derived from each log. @param onProgress receives the number of entries and the total */
  verifyDerived(
    store: Store,
    provider: CryptoProvider,
    onProgress: (checked: number, total: number) => void,
  ): Promise<readonly DerivedVerification[]>;
}

/** Verifies the entries alone, all of them. */
export const entriesVerification: LogVerification = {
  async verifyAudit(store, _provider, { outside, onProgress, signal } = {}) {
    const { tree: _, ...found } = await store.verifyAudit({ outside, onProgress, signal });
    return { ...found, continuedFrom: undefined };
  },
  verifyDerived: async () => [],
};

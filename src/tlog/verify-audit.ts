/** Verifies the audit log: its entries, and then the tree over them. */
import type { AuditVerification } from "../audit/verification.ts";
import type { CryptoProvider } from "../crypto/provider.ts";
import type { Store } from "../store/store.ts";
import { createAuditSource } from "./source.ts";
import { verifyTree } from "./verify-tree.ts";

/** Verifies entries, their chain and its checkpoints, and the stored hashes and checkpoints of the verifiable log. */
export async function verifyAudit(
  store: Store,
  provider: CryptoProvider,
  options: NonNullable<Parameters<Store["verifyAudit"]>[0]> = {},
): Promise<AuditVerification> {
  const found = await store.verifyAudit(options);
  // A tree over changed entries would only be another sign of the same fault.
  if (!found.valid) return found;
  const { signal } = options;
  const { fault } = await verifyTree({ store, provider, source: createAuditSource(store), signal });
  if (fault === undefined) return found;
  return { ...found, valid: false, firstBrokenSequence: fault.leaf + 1, reason: fault.reason };
}

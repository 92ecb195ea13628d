/** Verifies the audit log: its entries and the tree over them. */
import { readHead } from "../../src/audit/log.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import type { AuditLogVerification, VerifyAuditOptions } from "../../src/services/verify-logs.ts";
import type { Store } from "../../src/store/store.ts";
import { createAuditSource } from "./source.ts";
import { createVerifiedEnds, type VerifiedEnd } from "./verified-ends.ts";
import { compareTree, listSizes, readTilesRoot } from "./verify-tree.ts";

/** Verifies entries, their chain and checkpoints, and the verifiable log's stored hashes and checkpoints. */
export async function verifyAudit(
  store: Store,
  provider: CryptoProvider,
  { wholeUpTo = Number.POSITIVE_INFINITY, now = () => new Date(), ...options }: VerifyAuditOptions = {},
): Promise<AuditLogVerification> {
  const source = createAuditSource(store);
  const ends = createVerifiedEnds(store);
  const known = await ends.find(source.log);
  const isLong = (await readHead(store.reader)).sequence > wholeUpTo;
  const earlier = isLong && (await isRootOf(store, source.log, known)) ? known : undefined;
  // The sizes are read before the end of the log, so the log is never shorter than its checkpoints.
  const sizes = await listSizes(store, source.log);
  const verification = await store.verifyAudit({ ...options, after: earlier, treeSizes: sizes });
  const { tree, ...entries } = verification;
  const continuedFrom = entries.verifiedFrom === 1 ? undefined : earlier?.verifiedAt;
  const found = { ...entries, continuedFrom };
  // A tree over modified entries would only show the same damage again.
  if (!found.valid || tree === undefined) return found;
  const breakAt = (sequence: number, reason: string): AuditLogVerification => ({
    ...found,
    valid: false,
    firstBrokenSequence: sequence,
    reason,
  });
  if (known !== undefined && known.sequence > found.entries)
    return breakAt(found.entries + 1, "the entry is missing: an earlier verification read it");
  const { signal } = options;
  const { leafTiles, tileEnd } = tree;
  const { fault, tilesRoot } = await compareTree({ store, provider, source, signal }, { sizes, leafTiles });
  if (fault !== undefined) return breakAt(fault.leaf + 1, fault.reason);
  // Without it, the next verification starts where this one started.
  if (tileEnd.sequence > 0)
    await ends.put(source.log, { ...tileEnd, root: tilesRoot, verifiedAt: now() }).catch(() => {});
  return found;
}

/** Whether the stored tree still has the root that an earlier verification computed. */
async function isRootOf(store: Store, log: string, end: VerifiedEnd | undefined): Promise<boolean> {
  const root = end && (await readTilesRoot(store, log, end.sequence));
  return root !== undefined && Buffer.compare(root, end?.root ?? new Uint8Array()) === 0;
}

/** Verifies logs including their trees: the stored hashes and checkpoints. */
import type { LogVerification } from "../../src/services/verify-logs.ts";
import { createBlockSource } from "./block-source.ts";
import { createAuditSource } from "./source.ts";
import { verifyAudit } from "./verify-audit.ts";
import { type TreeVerification, verifyTree } from "./verify-tree.ts";

export const treeVerification: LogVerification = {
  verifyAudit,
  async verifyDerived(store, provider, onProgress) {
    const found: TreeVerification[] = [];
    for (const source of [createAuditSource(store), createBlockSource(store, provider)])
      found.push(await verifyTree({ store, provider, source, onProgress }));
    return found;
  },
};

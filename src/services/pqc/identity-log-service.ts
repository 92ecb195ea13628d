/** pqc.IdentityLogService: unpack, call, pack. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { IdentityLogService } from "#gen/pqc/identity_log_service_pb.ts";
import { identityLog } from "../../audit/tables.ts";
import type { Store } from "../../store/store.ts";
import { createLine, shareVerifications } from "../../tlog/shared-verifications.ts";
import { packCheckpoint } from "../audit-entries.ts";
import { identityFeed, listIdentityLog, packEntry, watchIdentityLog } from "./identity-log.ts";

/** Implements the service. */
export function identityLogService({
  store,
}: {
  readonly store: Store;
}): ServiceImpl<typeof IdentityLogService> {
  const feed = identityFeed(store);
  const verifications = shareVerifications(createLine(), store.verifyIdentityLog);
  return {
    getIdentityLog: async (query) => {
      const { rows, nextPageToken, totalSize } = await listIdentityLog(store, query, query);
      return { entries: rows.map(packEntry), nextPageToken, totalSize };
    },
    async *watchIdentityLog(query, { signal }) {
      for await (const entry of watchIdentityLog({ store, feed }, query, query.afterSequence, signal))
        yield { entry: packEntry(entry) };
    },
    verifyIdentityLog: async (_req, { signal }) => {
      const { checkpoint, firstBrokenSequence, ...found } = await verifications.wait({ signal });
      return {
        ...found,
        ...(firstBrokenSequence !== undefined && { firstBrokenSequence }),
        ...(checkpoint && { checkpoint: packCheckpoint(store, checkpoint, identityLog) }),
      };
    },
  };
}

/** pqc.IdentityLogService: unpack, call, pack. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { IdentityLogEntrySchema, IdentityLogService } from "#gen/pqc/identity_log_service_pb.ts";
import type { StoredEntry } from "../../audit/log.ts";
import { identityLog } from "../../audit/tables.ts";
import { createCallerMutex } from "../../calls/caller-mutex.ts";
import type { Store } from "../../store/store.ts";
import { type EntryQuery, openEntryLog, packCheckpoint, readFilter } from "../entry-log.ts";
import { shareVerifications } from "../shared-verifications.ts";

export function identityLogService({
  store,
}: {
  readonly store: Store;
}): ServiceImpl<typeof IdentityLogService> {
  const log = openEntryLog(store, identityLog);
  const verifications = shareVerifications(createCallerMutex(), store.verifyIdentityLog);
  return {
    getIdentityLog: async (query) => {
      const { rows, ...page } = await log.list(toFilter(query), query);
      return { ...page, entries: rows.map(packEntry) };
    },
    async *watchIdentityLog(query, { signal }) {
      const watched = { filter: toFilter(query), after: query.afterSequence, signal };
      for await (const entry of log.watch(watched)) yield { entry: packEntry(entry) };
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

function toFilter({ subject, ...query }: EntryQuery & { readonly subject: string }) {
  return { ...readFilter(query), ...(subject && { keyId: subject }) };
}

function packEntry(entry: StoredEntry): MessageInitShape<typeof IdentityLogEntrySchema> {
  const { keyId: subject, owner: _owner, keyName: _name, ...shown } = entry;
  return { ...shown, subject, timestamp: timestampFromDate(entry.timestamp) };
}

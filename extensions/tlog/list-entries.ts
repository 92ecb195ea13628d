import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ListLogEntriesResponseSchema } from "#gen/tlog/log_service_pb.ts";
import { emptyChain } from "../../src/audit/chain.ts";
import { entryText } from "../../src/audit/entry-text.ts";
import { refuse } from "../../src/errors.ts";
import { cutPage } from "../../src/records/pages.ts";
import { type PageFields, readPage } from "../../src/services/fields.ts";
import type { LogServiceDeps, ServedLog } from "./logs.ts";

const listName = "tlog audit entries";

/**
 * Lists the audit entries covered by the newest checkpoint.
 *
 * @throws LOG_ENTRIES_PRIVATE, LOG_NOT_FOUND, FIELD_INVALID
 */
export async function listLogEntries(
  { store, areEntriesPublic }: LogServiceDeps,
  log: ServedLog,
  fields: PageFields,
): Promise<MessageInitShape<typeof ListLogEntriesResponseSchema>> {
  if (log.name !== "audit")
    throw refuse("LOG_NOT_FOUND", `the log ${log.name} has no list of entries; read blocks with GetChain`, {
      log: log.name,
    });
  if (!areEntriesPublic)
    throw refuse("LOG_ENTRIES_PRIVATE", "this server publishes only the hashes of audit entries");
  const request = readPage(fields, listName);
  const published = await log.readPublishedSize();
  const wanted = Math.max(0, Math.min(request.limit + 1, published - request.after));
  // Also reads the entry before the first one, for its hash.
  const before = request.after > 0 ? 1 : 0;
  const read = wanted === 0 ? [] : await store.readTrueEntries(request.after - before, wanted + before);
  const shown = read.slice(before).map((entry, i) => {
    const previous = i + before > 0 ? read[i + before - 1] : undefined;
    const canonicalJson = entryText(entry, previous?.entryHash ?? emptyChain.entryHash);
    return { leafIndex: entry.sequence - 1, canonicalJson };
  });
  const { rows, nextPageToken } = cutPage(shown, request, listName, ({ leafIndex }) => leafIndex + 1);
  return { entries: [...rows], nextPageToken, totalSize: published };
}

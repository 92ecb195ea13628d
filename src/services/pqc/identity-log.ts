/** Lists and watches the log of identities. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { IdentityLogEntrySchema } from "#gen/pqc/identity_log_service_pb.ts";
import type { AuditEntry } from "../../audit/chain.ts";
import { type AuditFilter, auditListName, listAuditEntries, readEntries, readHead } from "../../audit/log.ts";
import { identityLog } from "../../audit/tables.ts";
import { createFeed, type Feed } from "../../records/feed.ts";
import type { Store } from "../../store/store.ts";
import { entryBytes, watchEntries } from "../audit-entries.ts";
import { type PageFields, readPage, readTime } from "../fields.ts";

/** Which entries to read; empty texts match all. */
export interface IdentityQuery {
  readonly subject: string;
  readonly operation: string;
  readonly outcome: string;
  readonly user: string;
  readonly from?: Timestamp | undefined;
  readonly to?: Timestamp | undefined;
}

/** Turns a query into a filter. */
export function toFilter({ subject, operation, outcome, user, from, to }: IdentityQuery): AuditFilter {
  return {
    ...(subject && { keyId: subject }),
    ...(operation && { operation }),
    ...(outcome && { outcome }),
    ...(user && { user }),
    ...(from && { from: readTime("from", from) }),
    ...(to && { to: readTime("to", to) }),
  };
}

/** Lists entries, oldest first. @throws FIELD_INVALID for a page token of another list */
export function listIdentityLog(store: Store, query: IdentityQuery, fields: PageFields) {
  const filter = toFilter(query);
  const page = readPage(fields, auditListName(filter, identityLog));
  return listAuditEntries(store.reader, page, filter, identityLog);
}

const topicOf = (subject: string) => `subject ${subject}`;

/** The feed of entries that all watchers share. */
export function identityFeed(store: Store): Feed<AuditEntry> {
  return createFeed({
    readEnd: async () => (await readHead(store.reader, identityLog)).sequence,
    read: (after, limit, topic) => {
      const filter = topic === "" ? {} : { keyId: topic.slice(topicOf("").length) };
      return readEntries(store.reader, after, limit, filter, identityLog);
    },
    positionOf: ({ sequence }) => sequence,
    topicsOf: ({ keyId }) => [topicOf(keyId)],
    bytesOf: () => entryBytes,
    callerOf: store.callerOf,
    onWrite: (listener) => store.onWrite(listener),
  });
}

/** Yields entries as they are written. @param after and @throws as `watchEntries` */
export function watchIdentityLog(
  { store, feed }: { readonly store: Store; readonly feed: Feed<AuditEntry> },
  query: IdentityQuery,
  after: number | undefined,
  signal: AbortSignal,
): AsyncIterable<AuditEntry> {
  const topic = query.subject === "" ? "" : topicOf(query.subject);
  return watchEntries({ store, feed, log: identityLog }, { filter: toFilter(query), topic, after, signal });
}

/** An entry as a message. */
export function packEntry(entry: AuditEntry): MessageInitShape<typeof IdentityLogEntrySchema> {
  const { keyId: subject, owner: _owner, keyName: _name, ...shown } = entry;
  return { ...shown, subject, timestamp: timestampFromDate(entry.timestamp) };
}

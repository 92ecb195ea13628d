/** Lists and watches the audit log for callers. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { AuditEntrySchema } from "#gen/kms/audit_pb.ts";
import type { AuditEntry } from "../../audit/chain.ts";
import { type AuditFilter, auditListName, listAuditEntries, readEntries, readHead } from "../../audit/log.ts";
import { keyLog } from "../../audit/tables.ts";
import { createFeed, type Feed } from "../../records/feed.ts";
import type { Principal } from "../../records/ownership.ts";
import type { Store } from "../../store/store.ts";
import { entryBytes, watchEntries } from "../audit-entries.ts";
import { type PageFields, readPage, readTime } from "../fields.ts";
import { unknownSubject } from "./event.ts";
import { type FindDeps, findNamedId, findOwner } from "./find-key.ts";
import { parseHandle } from "./handle.ts";

/** Which entries to read; empty texts match all. */
export interface AuditQuery {
  /** The handle of a key; a name without a version stands for all its versions. */
  readonly keyId: string;
  readonly operation: string;
  readonly outcome: string;
  readonly user: string;
  readonly from?: Timestamp | undefined;
  readonly to?: Timestamp | undefined;
}

/** The caller of a read, and whether they may read the entries of keys that they do not own. */
export interface AuditReader {
  readonly principal: Principal;
  readonly isAuditor: boolean;
}

/** Turns a query into a filter. A caller who is not an auditor sees only the entries of their own keys. */
export async function toFilter(
  deps: FindDeps,
  { keyId: handle, operation, outcome, user, from, to }: AuditQuery,
  { principal, isAuditor }: AuditReader,
): Promise<AuditFilter> {
  return {
    ...(operation && { operation }),
    ...(outcome && { outcome }),
    ...(user && { user }),
    ...(from && { from: readTime("from", from) }),
    ...(to && { to: readTime("to", to) }),
    ...(handle && (await findSubject(deps, handle, principal))),
    ...(!isAuditor && { owner: principal.userId }),
  };
}

async function findSubject(deps: FindDeps, handle: string, principal: Principal): Promise<AuditFilter> {
  const parsed = parseHandle(handle);
  if (parsed.kind === "id") return { keyId: unknownSubject(parsed.keyId).keyId };
  // A name that does not exist has no entries but of refusals, like one that the caller may not know of.
  if (parsed.version === undefined)
    return { owner: await findOwner(deps, parsed, principal), keyName: parsed.name };
  return { keyId: (await findNamedId(deps, parsed, principal)) ?? unknownSubject(handle).keyId };
}

/** Lists entries, oldest first. @throws FIELD_INVALID for a page token of another list */
export function listAudit(store: Store, filter: AuditFilter, fields: PageFields) {
  const page = readPage(fields, auditListName(filter));
  return listAuditEntries(store.reader, page, filter, keyLog, { isTagged: store.isEntryTagged });
}

/** The topics of the feed: the entries of a key, of a name, or of an owner. */
const topicOf = {
  key: (keyId: string) => `key ${keyId}`,
  name: (owner: string, keyName: string) => `name ${JSON.stringify([owner, keyName])}`,
  owner: (owner: string) => `owner ${owner}`,
};

/** The feed of audit entries that all watchers share. */
export function auditFeed(store: Store): Feed<AuditEntry> {
  return createFeed({
    readEnd: async () => (await readHead(store.reader)).sequence,
    read: (after, limit, topic) =>
      readEntries(store.reader, after, limit, filterOf(topic), keyLog, store.isEntryTagged),
    positionOf: ({ sequence }) => sequence,
    topicsOf: ({ keyId, owner, keyName }) => [
      topicOf.key(keyId),
      topicOf.owner(owner),
      ...(keyName === "" ? [] : [topicOf.name(owner, keyName)]),
    ],
    bytesOf: () => entryBytes,
    callerOf: store.callerOf,
    onWrite: (listener) => store.onWrite(listener),
  });
}

/** The topic that leaves out the most entries which a filter leaves out. */
function findTopic({ keyId, owner, keyName }: AuditFilter): string {
  if (keyId !== undefined) return topicOf.key(keyId);
  if (owner === undefined) return "";
  return keyName === undefined ? topicOf.owner(owner) : topicOf.name(owner, keyName);
}

function filterOf(topic: string): AuditFilter {
  const [kind = "", ...rest] = topic.split(" ");
  const value = rest.join(" ");
  if (kind === "key") return { keyId: value };
  if (kind === "owner") return { owner: value };
  if (kind !== "name") return {};
  const [owner, keyName]: [string, string] = JSON.parse(value);
  return { owner, keyName };
}

/** Yields entries as they are written. @param after and @throws as `watchEntries` */
export function watchAudit(
  { store, feed }: { readonly store: Store; readonly feed: Feed<AuditEntry> },
  filter: AuditFilter,
  after: number | undefined,
  signal: AbortSignal,
): AsyncIterable<AuditEntry> {
  return watchEntries({ store, feed, log: keyLog }, { filter, topic: findTopic(filter), after, signal });
}

/** An entry as a message. */
export function packEntry(entry: AuditEntry): MessageInitShape<typeof AuditEntrySchema> {
  const { owner: _owner, keyName: _name, ...shown } = entry;
  return { ...shown, timestamp: timestampFromDate(entry.timestamp) };
}

/** Lets callers list and watch the key audit log and the identity log. */
import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { checkpointMessage } from "../audit/chain.ts";
import { type EntryFilter, matchesFilter } from "../audit/entry-filter.ts";
import {
  type EntryReading,
  listEntries,
  nameEntryList,
  readEntries,
  readHead,
  type StoredEntry,
} from "../audit/log.ts";
import type { LogTables } from "../audit/tables.ts";
import type { SignedCheckpoint } from "../audit/verification.ts";
import { refuseField } from "../errors.ts";
import { createFeed } from "../records/feed.ts";
import type { Page } from "../records/pages.ts";
import type { Store } from "../store/store.ts";
import { type PageFields, readPage, readTime } from "./fields.ts";

/** Filters as requests contain them; empty strings match everything. */
export interface EntryQuery {
  readonly operation: string;
  readonly outcome: string;
  readonly user: string;
  readonly from?: Timestamp | undefined;
  readonly to?: Timestamp | undefined;
}

/**
 * Reads the filters that both logs share.
 *
 * @throws FIELD_INVALID for an invalid time
 */
export function readFilter({ operation, outcome, user, from, to }: EntryQuery): EntryFilter {
  return {
    ...(operation && { operation }),
    ...(outcome && { outcome }),
    ...(user && { user }),
    ...(from && { from: readTime("from", from) }),
    ...(to && { to: readTime("to", to) }),
  };
}

export interface EntryWatch {
  readonly filter: EntryFilter;
  /** Starts after this entry; after the newest entry if undefined. */
  readonly after: number | undefined;
  readonly signal: AbortSignal;
}

/** A log as callers see it. */
export interface EntryLog {
  /** @throws FIELD_INVALID for a page token that belongs to another list */
  list(
    filter: EntryFilter,
    fields: PageFields & { readonly newestFirst: boolean },
  ): Promise<Page<StoredEntry> & { readonly totalSize: number }>;
  /**
   * Yields entries as the log grows, in order and each once.
   *
   * @throws FIELD_INVALID if entry `after` does not exist: the caller read it from another log
   */
  watch(input: EntryWatch): AsyncGenerator<StoredEntry>;
}

/** Approximate size of an entry in memory. */
const entryBytes = 700;

/** Opens a store's log. All watchers share one feed. */
export function openEntryLog(store: Store, log: LogTables): EntryLog {
  const { reader } = store;
  const isTrue: EntryReading["isTrue"] = (row, previousHash) => store.isTrueEntry(row, previousHash, log);
  const feed = createFeed<StoredEntry>({
    readEnd: async () => (await readHead(reader, log)).sequence,
    read: (after, limit, topic) =>
      readEntries(reader, { after, limit }, { filter: filterOf(topic), log, isTrue }),
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
  return {
    list(filter, { newestFirst, ...fields }) {
      const reading = { filter, log, isNewestFirst: newestFirst, isTrue };
      return listEntries(reader, readPage(fields, nameEntryList(reading)), reading);
    },
    async *watch({ filter, after, signal }) {
      const head = await readHead(reader, log);
      const first = after ?? head.sequence;
      if (first > head.sequence)
        throw refuseField(
          "afterSequence",
          `is beyond the end of the log, which has ${head.sequence} entries`,
        );
      for await (const entry of feed.follow({ after: first, topic: findTopic(filter), signal }))
        if (matchesFilter(entry, filter)) yield entry;
    },
  };
}

/** Topics of the feed: the entries of a key or other subject, of a name, or of an owner. */
const topicOf = {
  key: (keyId: string) => `key ${keyId}`,
  name: (owner: string, keyName: string) => `name ${JSON.stringify([owner, keyName])}`,
  owner: (owner: string) => `owner ${owner}`,
};

/** Returns the narrowest topic that contains everything the filter admits. */
function findTopic({ keyId, owner, keyName }: EntryFilter): string {
  if (keyId !== undefined) return topicOf.key(keyId);
  if (owner === undefined) return "";
  return keyName === undefined ? topicOf.owner(owner) : topicOf.name(owner, keyName);
}

function filterOf(topic: string): EntryFilter {
  const [kind = "", ...rest] = topic.split(" ");
  const value = rest.join(" ");
  if (kind === "key") return { keyId: value };
  if (kind === "owner") return { owner: value };
  if (kind !== "name") return {};
  const [owner, keyName]: [string, string] = JSON.parse(value);
  return { owner, keyName };
}

/** Converts a checkpoint to its message fields, with the key that verifies it. */
export function packCheckpoint(store: Store, checkpoint: SignedCheckpoint, { purpose }: LogTables) {
  const { sequence, entryHash, signedAt, signature } = checkpoint;
  return {
    sequence,
    entryHash,
    signedAt: timestampFromDate(signedAt),
    statement: new TextDecoder().decode(checkpointMessage(checkpoint, purpose)),
    signature,
    publicKey: store.checkpointKey.exportRaw(),
    publicKeyPem: store.checkpointKey.toPem(),
  };
}

/** Loads the audit log page by page, or follows it. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import {
  type GetAuditLogRequestSchema,
  KmsService,
  type WatchAuditLogResponse,
} from "#gen/kms/kms_service_pb.ts";
import { listAccepted } from "../../../../src/calls/accepted-values.ts";
import { type CheckedEntry, checkEntry, readEntry } from "../../audit.ts";
import type { Caller } from "../../caller.ts";
import { parseMinute } from "../../time.ts";
import { formatNumber } from "../../values.ts";
import { type List, loadList, pageSize } from "../lists.ts";

const { getAuditLog } = KmsService.method;

export const operations = listAccepted(getAuditLog.input.field.operation);
export const outcomes = listAccepted(getAuditLog.input.field.outcome);

const hourMs = 3_600_000;
/** Periods to choose from, in milliseconds before now; undefined for the ones without a start. */
const periodsMs: Readonly<Record<string, number | undefined>> = {
  "All time": undefined,
  "Last hour": hourMs,
  "Last 24 hours": 24 * hourMs,
  "Last 7 days": 7 * 24 * hourMs,
  "From … to …": undefined,
};
export const periods = Object.keys(periodsMs);
/** The period with fields for both ends. */
export const ownPeriod = "From … to …";

/** The reader's filters; an empty text selects everything. */
export interface AuditFilters {
  /** "key-…", "name/…", or a plain name. */
  readonly key: string;
  readonly operation: string;
  readonly outcome: string;
  readonly user: string;
  readonly period: string;
  /** "2026-11-23T13:58" in UTC, for the custom period. */
  readonly from: string;
  readonly to: string;
}

/** The page's initial values. */
export const noFilters: AuditFilters = {
  ...{ key: "", operation: "", outcome: "", user: "", period: "Last 24 hours", from: "", to: "" },
};

/** Filters that both calls accept. */
export type AuditQuery = Pick<
  MessageInitShape<typeof GetAuditLogRequestSchema>,
  "keyId" | "operation" | "outcome" | "user" | "from" | "to"
>;

export function toQuery(filters: AuditFilters, now: Date): AuditQuery {
  const { operation, outcome, user, period } = filters;
  const periodMs = periodsMs[period];
  const from = period === ownPeriod ? parseMinute(filters.from) : undefined;
  const to = period === ownPeriod ? parseMinute(filters.to) : undefined;
  return {
    ...{ keyId: toHandle(filters.key), operation, outcome, user: user.trim() },
    ...(from && { from }),
    ...(to && { to }),
    ...(periodMs !== undefined && { from: timestampFromMs(now.getTime() - periodMs) }),
  };
}

/** Converts a plain name to a handle. IDs and handles stay unchanged. */
export function toHandle(typed: string): string {
  const text = typed.trim();
  return text === "" || /^(key-|grant-|import-|name\/|user\/)/.test(text) ? text : `name/${text}`;
}

/**
 * Loads the next page, newest entries first.
 *
 * @param known the earlier pages
 */
export function loadEntries(
  { call }: Caller,
  query: AuditQuery,
  known?: List<AuditEntry>,
): Promise<List<AuditEntry>> {
  const count = (known?.items.length ?? 0) + pageSize;
  return loadList(
    (page) => call(getAuditLog, { ...query, ...page, newestFirst: true }),
    ({ auditLog }) => auditLog,
    count,
    known,
  );
}

/**
 * Recomputes a listed entry's hash, which covers the entry before it.
 *
 * @param messages the stream of the log, from the entry before it
 * @returns "anchor" if the reader may not see the entry before it
 */
export async function checkLink(
  entry: AuditEntry,
  messages: AsyncIterable<WatchAuditLogResponse>,
): Promise<CheckedEntry["link"]> {
  let before: CheckedEntry | undefined;
  for await (const message of messages) {
    const read = readEntry(message);
    if (read.sequence >= entry.sequence) break;
    before = { entry: read, link: "anchor" };
  }
  return (await checkEntry(entry, before)).link;
}

/** Maximum entries kept while following the log. */
export const maxLiveEntries = 500;

/** Splits details into names and values: "algorithm=ML-DSA-65, usage=SIGN". */
export function splitDetails(details: string): (readonly [name: string, value: string])[] {
  return details.split(/, (?=\w+=)/).flatMap((detail) => {
    const [name = "", ...value] = detail.split("=");
    return name === "" ? [] : [[name, value.join("=")] as const];
  });
}

/** Summarizes a search. */
export function describeList(list: List<AuditEntry> | undefined): string {
  if (list === undefined) return "";
  if (list.totalSize === 0) return "No entries match. Choose a longer period or remove filters.";
  return `${formatNumber(list.items.length)} of ${formatNumber(list.totalSize)} entries, newest first.`;
}

/** Describes the list while the page follows the log, and afterwards. */
export function describeStream(count: number, isOpen: boolean): string {
  const state = isOpen ? "Following the log" : "No longer following the log";
  return `${state}: ${formatNumber(count)} entries, newest first. The page keeps the newest ${maxLiveEntries}.`;
}

/** Loads the audit log page by page, or follows it. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { type GetAuditLogRequestSchema, KmsService } from "#gen/kms/kms_service_pb.ts";
import type { Caller } from "../../caller.ts";
import { parseMinute } from "../../time.ts";
import { formatNumber } from "../../values.ts";

const { getAuditLog } = KmsService.method;

export const operations = [
  "CREATE IMPORT SIGN VERIFY ENCAPSULATE DECAPSULATE ENCRYPT DECRYPT RE_ENCRYPT ROTATE DISABLE ENABLE",
  "SCHEDULE_DESTROY RESTORE DESTROY CREATE_NAME UPDATE_NAME CREATE_IMPORT CREATE_GRANT REVOKE_GRANT",
  "REFUSALS",
].flatMap((line) => line.split(" "));
export const outcomes = ["OK", "REFUSED"];

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

/** Log entries, oldest first. */
export interface EntryList {
  readonly entries: readonly AuditEntry[];
  /** Empty on the last page. */
  readonly nextPageToken: string;
  readonly totalSize: number;
}

const pageSize = 100;

/**
 * Loads the next page.
 *
 * @param known the earlier pages
 */
export async function loadEntries(
  { call }: Caller,
  query: AuditQuery,
  known?: EntryList,
): Promise<EntryList> {
  const pageToken = known?.nextPageToken ?? "";
  const { auditLog, nextPageToken, totalSize } = await call(getAuditLog, { ...query, pageSize, pageToken });
  return { entries: [...(known?.entries ?? []), ...auditLog], nextPageToken, totalSize };
}

/** Maximum entries kept while following the log. */
export const maxLiveEntries = 500;

/** Appends new entries to the known ones without duplicates, and keeps the newest. */
export function mergeEntries(
  known: readonly AuditEntry[],
  added: readonly AuditEntry[],
): readonly AuditEntry[] {
  const last = known.at(-1)?.sequence ?? 0;
  return [...known, ...added.filter(({ sequence }) => sequence > last)].slice(-maxLiveEntries);
}

/** Splits details into names and values: "algorithm=ML-DSA-65, usage=SIGN". */
export function splitDetails(details: string): string[] {
  return details === "" ? [] : details.split(/, (?=\w+=)/);
}

/** Summarizes a search. */
export function describeList(list: EntryList | undefined): string {
  if (list === undefined) return "";
  const { entries, totalSize } = list;
  if (totalSize === 0) return "No entries match. Choose a longer period or remove filters.";
  return `${formatNumber(entries.length)} of ${formatNumber(totalSize)} entries, oldest first.`;
}

/** Describes the list while the page follows the log, and afterwards. */
export function describeStream(count: number, isOpen: boolean): string {
  const state = isOpen ? "Following the log" : "No longer following the log";
  return `${state}: ${formatNumber(count)} entries, newest first. The page keeps the newest ${maxLiveEntries}.`;
}

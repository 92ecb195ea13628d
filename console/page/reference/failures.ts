/** How calls fail: a call's own reasons, and the ones that many calls share. */
import type { ApiDocument, Operation } from "./document.ts";

/** The reasons for one HTTP status. */
export interface FailureRow {
  readonly status: string;
  /** "Not Found" */
  readonly title: string;
  readonly reasons: readonly string[];
}

/** A reason shared by a quarter of the calls is described once, on the first page. */
const commonShare = 0.25;

/** Reads a call's failures from its responses. */
export function listFailures({ responses }: Operation): FailureRow[] {
  return Object.entries(responses)
    .filter(([status]) => status !== "200")
    .map(([status, { description }]) => ({
      status,
      title: description.split(",")[0] ?? "",
      reasons: [...description.matchAll(/`([A-Z][A-Z_]+)`/g)].map(([, reason = ""]) => reason),
    }));
}

/** The reasons that many calls share. */
export function findCommonReasons({ operations }: ApiDocument): ReadonlySet<string> {
  const counts = new Map<string, number>();
  for (const operation of operations)
    for (const { reasons } of listFailures(operation))
      for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const least = Math.max(2, operations.length * commonShare);
  return new Set([...counts].filter(([, count]) => count >= least).map(([reason]) => reason));
}

/** Keeps the reasons that pass a test, and the rows that still have any. */
export function pickReasons(rows: readonly FailureRow[], isKept: (reason: string) => boolean): FailureRow[] {
  return rows
    .map((row) => ({ ...row, reasons: row.reasons.filter(isKept) }))
    .filter(({ reasons }) => reasons.length > 0);
}

/** The common failures of all calls, by status. */
export function mergeCommon(document: ApiDocument, common: ReadonlySet<string>): FailureRow[] {
  const rows = new Map<string, FailureRow>();
  for (const operation of document.operations)
    for (const row of pickReasons(listFailures(operation), (reason) => common.has(reason))) {
      const known = rows.get(row.status)?.reasons ?? [];
      rows.set(row.status, { ...row, reasons: [...new Set([...known, ...row.reasons])] });
    }
  return [...rows.values()].sort((a, b) => Number(a.status) - Number(b.status));
}

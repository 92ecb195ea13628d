/** Filters for reading a log. */
import type { SelectQueryBuilder } from "kysely";
import type { Schema } from "../database/schema.ts";
import { toRow } from "../records/columns.ts";
import type { AuditEntry } from "./chain.ts";
import { type AuditEntriesTable, entryColumns, type LogTables } from "./tables.ts";

/** Selects entries to read; an omitted filter matches all. */
export interface EntryFilter {
  readonly keyId?: string | undefined;
  readonly owner?: string | undefined;
  readonly keyName?: string | undefined;
  readonly operation?: string | undefined;
  readonly outcome?: string | undefined;
  readonly user?: string | undefined;
  /** Inclusive. */
  readonly from?: Date | undefined;
  /** Exclusive. */
  readonly to?: Date | undefined;
}

/** Returns whether an entry passes a filter. */
export function matchesFilter(entry: AuditEntry, filter: EntryFilter): boolean {
  const row = toRow(entryColumns, { ...entry, entryTag: "" });
  return listConditions(filter).every(([column, operator, value]) => {
    if (operator === "=") return row[column] === value;
    return operator === ">=" ? row[column] >= value : row[column] < value;
  });
}

type Condition = readonly [keyof AuditEntriesTable, "=" | ">=" | "<", string | number];

/** Equality filters. Their order is part of page tokens. */
const equalFilters = ["keyId", "owner", "keyName", "operation", "outcome", "user"] as const;

export function listConditions(filter: EntryFilter): Condition[] {
  const { timestamp } = entryColumns;
  const { from, to } = filter;
  const conditions = equalFilters.flatMap((property): Condition[] => {
    const value = filter[property];
    return value === undefined ? [] : [[entryColumns[property].name, "=", value]];
  });
  if (from !== undefined) conditions.push([timestamp.name, ">=", from.getTime()]);
  if (to !== undefined) conditions.push([timestamp.name, "<", to.getTime()]);
  return conditions;
}

export function applyFilter<Output>(
  query: SelectQueryBuilder<Schema, LogTables["entries"], Output>,
  filter: EntryFilter,
): SelectQueryBuilder<Schema, LogTables["entries"], Output> {
  return listConditions(filter).reduce(
    (filtered, [column, operator, value]) => filtered.where(column, operator, value),
    query,
  );
}

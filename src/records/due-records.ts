/** Finds records that are due. */
import { type RawBuilder, sql } from "kysely";
import type { DuePosition } from "../database/due-work.ts";
import type { AnyRow } from "../database/schema.ts";
import type { Found, openTable } from "./record-table.ts";

type SearchedTable<T> = {
  listWhere(where: RawBuilder<boolean>, order: RawBuilder<unknown>, limit: number): Promise<Found<T>[]>;
} & Pick<ReturnType<typeof openTable>, "count">;

export interface DueRecord<T> extends DuePosition {
  readonly record: T;
}

export interface DueRecords<T> {
  list(atMs: number, limit: number, after: DuePosition): Promise<DueRecord<T>[]>;
  count(atMs: number): Promise<number>;
}

/**
 * Prepares queries for due records.
 *
 * @param column holds the due time
 * @param condition which of the due records have work to do; default: all of them
 */
export function findDueRecords<T>(
  table: SearchedTable<T>,
  column: string,
  condition: RawBuilder<unknown> = sql`1 = 1`,
): DueRecords<T> {
  const time = sql.ref(column);
  const isDue = (atMs: number) => sql<boolean>`(${time} <= ${atMs} and ${condition})`;
  const read = (row: Readonly<AnyRow>): DuePosition => ({
    dueAtMs: Number(row[column]),
    position: Number(row.position),
  });
  return {
    async list(atMs, limit, { dueAtMs, position }) {
      const isAfter = sql<boolean>`(${time} > ${dueAtMs} or (${time} = ${dueAtMs} and position > ${position}))`;
      const where = sql<boolean>`${isDue(atMs)} and ${time} >= ${dueAtMs} and ${isAfter}`;
      const found = await table.listWhere(where, sql`${time}, position`, limit);
      return found.map(({ record, row }) => ({ record, ...read(row) }));
    },
    count: (atMs) => table.count({ narrowing: { name: "due", where: isDue(atMs) } }),
  };
}

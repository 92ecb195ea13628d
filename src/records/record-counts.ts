/** Counts a table's records in every list that contains them. */
import { type Kysely, sql } from "kysely";
import type { Reader } from "../database/database.ts";
import { type AnyRow, anyTable, type Schema } from "../database/schema.ts";
import type { Columns, RecordOf } from "./columns.ts";
import { changeCounts, resetCounts } from "./list-counts.ts";
import { countedLists } from "./ownership.ts";
import { type Filters, nameList, type TableDeclaration } from "./table-declaration.ts";

/**
 * Creates a table's counters, all of which run within a transaction. A table without an owner has no counts.
 */
export function countRecords<C extends Columns>(declaration: TableDeclaration<C>) {
  const { name, columns, owner, filters = [] } = declaration;
  /** Names a record's lists: for each filter, all or its value; each for all owners and for its own. */
  const listsOf = (read: (property: string) => unknown): string[] => {
    if (owner === undefined) return [];
    const choices = filters.reduce<Filters<C>[]>(
      (lists, filter) => lists.flatMap((list) => [list, { ...list, [filter]: String(read(filter)) }]),
      [{}],
    );
    const lists = choices.map((list) => nameList(declaration, list));
    return countedLists(lists, { owner: String(read(owner)) });
  };
  const listsOfRecord = (record: RecordOf<C>) => new Set(listsOf((property) => record[property]));
  const change = async (db: Kysely<Schema>, lists: ReadonlySet<string>, by: number): Promise<void> => {
    if (lists.size > 0) await changeCounts(db, [...lists], by);
  };
  const columnOf = (property: string): string => columns[property]?.name ?? property;
  return {
    add: (db: Kysely<Schema>, record: RecordOf<C>) => change(db, listsOfRecord(record), 1),
    remove: (db: Kysely<Schema>, record: RecordOf<C>) => change(db, listsOfRecord(record), -1),
    async move(db: Kysely<Schema>, before: RecordOf<C>, after: RecordOf<C>): Promise<void> {
      const [left, joined] = [listsOfRecord(before), listsOfRecord(after)];
      await change(db, left.difference(joined), -1);
      await change(db, joined.difference(left), 1);
    },
    /** Recounts all records: after a change outside the server, the lists that held a record are unknown. */
    async recount(db: Kysely<Schema>): Promise<void> {
      if (owner === undefined) return;
      const grouped = [...filters, owner].map(columnOf);
      const groups = await anyTable(db)
        .selectFrom(name)
        .select(grouped)
        .select((row) => row.fn.countAll<number>().as("row_count"))
        .groupBy(grouped)
        .execute();
      const counts = new Map<string, number>();
      for (const group of groups)
        for (const list of listsOf((property) => group[columnOf(property)]))
          counts.set(list, (counts.get(list) ?? 0) + Number(group.row_count));
      await resetCounts(db, name, counts);
    },
    /**
     * Compares the stored counts with the rows.
     *
     * @returns the lists whose count differs
     */
    async verify(db: Reader): Promise<string[]> {
      if (owner === undefined) return [];
      const grouped = [...filters, owner].map(columnOf);
      const refs = sql.join(grouped.map((column) => sql.ref(column)));
      const none = sql.join(grouped.map(() => sql`cast(null as text)`));
      // One statement sees rows and counts at the same moment, even while servers write.
      const { rows } = await sql<AnyRow>`
        select ${refs}, count(*) as row_count, cast(null as text) as list_name
          from ${sql.table(name)} group by ${refs}
        union all select ${none}, row_count, list_name from list_counts
          where list_name = ${name} or list_name like ${`${name} %`}`.execute(db);
      const differences = new Map<string, number>();
      const add = (list: string, count: number) =>
        differences.set(list, (differences.get(list) ?? 0) + count);
      for (const row of rows) {
        if (row.list_name !== null) add(String(row.list_name), -Number(row.row_count));
        else
          for (const list of listsOf((property) => row[columnOf(property)])) add(list, Number(row.row_count));
      }
      return [...differences].flatMap(([list, difference]) => (difference === 0 ? [] : [list]));
    },
  };
}

/** The fields of a record's tag, in an order and encoding that never change during the record's lifetime. */
import type { Columns, RecordOf } from "./columns.ts";
import type { TableDeclaration } from "./table-declaration.ts";
import type { TagField } from "./tag.ts";

/**
 * Prepares a table's tag fields: its kind, its first columns, the `omittedAtEnd` columns, and the added
 * columns.
 *
 * The first columns are always present. The `omittedAtEnd` columns are present if one of them, or an added
 * column, has a value. An added column is present, with its name, if it has a value. Each list of fields
 * therefore belongs to exactly one record, and a record that was written before a column existed keeps its
 * fields.
 *
 * @throws Error if the columns are declared in a different order, because existing tags would no longer match
 */
export function prepareTagFields<C extends Columns>(
  declaration: TableDeclaration<C>,
): (record: RecordOf<C>) => TagField[] {
  const { name, columns, tagKind = name, omittedAtEnd = [] } = declaration;
  const tagged = Object.keys(columns).filter((property) => columns[property]?.tagging !== "never");
  const added = tagged.filter((property) => columns[property]?.tagging === "added");
  const others = tagged.slice(0, tagged.length - added.length);
  const first = others.slice(0, others.length - omittedAtEnd.length);
  requireTail(name, tagged, [...first, ...omittedAtEnd, ...added]);
  for (const property of added) requireEmptyByDefault(name, property, columns);

  const listFields = (record: RecordOf<C>, properties: readonly string[]): TagField[] =>
    properties.flatMap((property) => [...(columns[property]?.listTagFields(record[property]) ?? [])]);
  return (record) => {
    const fields = [tagKind, ...listFields(record, first)];
    const omitted = listFields(record, omittedAtEnd);
    const later = listFields(record, added);
    const areOmitted = later.length === 0 && omitted.every((field) => field === "");
    return areOmitted ? fields : [...fields, ...omitted, ...later];
  };
}

function requireTail(table: string, declared: readonly string[], wanted: readonly string[]): void {
  if (declared.every((property, index) => property === wanted[index])) return;
  throw new Error(
    `table ${table}: the tagged columns are ${declared.join(", ")}; declare the omittedAtEnd columns after all others, ` +
      "in the order of omittedAtEnd, and added columns after these",
  );
}

/** Rows older than the column have null there, which must not count as a value. */
function requireEmptyByDefault(table: string, property: string, columns: Columns): void {
  const column = columns[property];
  if (column?.listTagFields(column.fromRow(null)).length === 0) return;
  throw new Error(
    `table ${table}: the added column ${property} has a value in rows older than the column; declare it optional`,
  );
}

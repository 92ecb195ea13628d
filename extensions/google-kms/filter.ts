/** Compiles list filters to row predicates. */
import { parseRfc3339 } from "../../src/rfc3339.ts";
import { type Comparison, type Filter, invalid, type Operator, parseFilter } from "./filter-syntax.ts";

/** Whether a row is in the list. */
export type Condition<Row> = (row: Row) => boolean;

/**
 * Compiles one comparison with a field.
 *
 * @throws FIELD_INVALID
 */
export type FilterField<Row> = (comparison: Comparison) => Condition<Row>;

/** A resource's fields by proto name: "create_time". */
export type FilterFields<Row> = Readonly<Record<string, FilterField<Row>>>;

/**
 * Compiles a filter to a predicate.
 *
 * @param fields the fields that the filter may use, in snake or camel case; "labels" stands for
 *   "labels.<key>"
 * @returns undefined for an empty filter
 * @throws FIELD_INVALID
 */
export function compileFilter<Row>(text: string, fields: FilterFields<Row>): Condition<Row> | undefined {
  return text.trim() === "" ? undefined : compile(parseFilter(text), fields);
}

function compile<Row>(filter: Filter, fields: FilterFields<Row>): Condition<Row> {
  if (filter.kind === "comparison") return compileComparison(filter, fields);
  if (filter.kind === "not") {
    const condition = compile(filter.of, fields);
    return (row) => !condition(row);
  }
  const conditions = filter.of.map((one) => compile(one, fields));
  return filter.kind === "and"
    ? (row) => conditions.every((condition) => condition(row))
    : (row) => conditions.some((condition) => condition(row));
}

function compileComparison<Row>(comparison: Comparison, fields: FilterFields<Row>): Condition<Row> {
  const { field } = comparison;
  const name = field.startsWith("labels.") ? "labels" : toSnakeCase(field);
  const found = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (found !== undefined) return found(comparison);
  throw invalid(`"${field}" is not supported; use one of ${Object.keys(fields).join(", ")}`);
}

function toSnakeCase(name: string): string {
  return name.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** A text field, such as a name. */
export function textField<Row>(read: (row: Row) => string): FilterField<Row> {
  return (comparison) => compareText(comparison, read);
}

/** Labels: "labels.team" is the label "team". A row without it differs from every value. */
export function labelsField<Row>(read: (row: Row) => Readonly<Record<string, string>>): FilterField<Row> {
  return (comparison) => {
    const label = comparison.field.slice("labels.".length);
    if (label === "") throw invalid('"labels" needs a label key, such as labels.team=alpha');
    return compareText(comparison, (row) => {
      const labels = read(row);
      return Object.hasOwn(labels, label) ? labels[label] : undefined;
    });
  };
}

function compareText<Row>(
  { field, operator, value }: Comparison,
  read: (row: Row) => string | undefined,
): Condition<Row> {
  requireOperator(field, operator, ["=", "!=", ":"]);
  if (operator === "=") return (row) => read(row) === value;
  if (operator === "!=") return (row) => read(row) !== value;
  // google.aip.dev/160, "Has operator": an asterisk tests for presence.
  if (value === "*") return (row) => read(row) !== undefined;
  const part = value.toLowerCase();
  return (row) => read(row)?.toLowerCase().includes(part) === true;
}

/** A time field. A row without a time matches no comparison. */
export function timeField<Row>(read: (row: Row) => Date | undefined): FilterField<Row> {
  return ({ field, operator, value }) => {
    requireOperator(field, operator, ["=", "!=", "<", "<=", ">", ">="]);
    const wanted = parseRfc3339(value)?.getTime();
    if (wanted === undefined)
      throw invalid(
        `"${value}" is not a time for "${field}"; write it in quotes, such as "2026-01-31T12:00:00Z"`,
      );
    return (row) => {
      const ms = read(row)?.getTime();
      return ms !== undefined && compareNumbers(operator, ms, wanted);
    };
  };
}

function compareNumbers(operator: Operator, one: number, other: number): boolean {
  switch (operator) {
    case "<":
      return one < other;
    case "<=":
      return one <= other;
    case ">":
      return one > other;
    case ">=":
      return one >= other;
    default:
      return (one === other) === (operator === "=");
  }
}

/**
 * A field with a fixed set of values.
 *
 * @param names all values, including ones that no row here has
 */
export function choiceField<Row>(read: (row: Row) => string, names: readonly string[]): FilterField<Row> {
  return ({ field, operator, value }) => {
    requireOperator(field, operator, ["=", "!="]);
    if (!names.includes(value))
      throw invalid(`"${value}" is not a value of "${field}"; use one of ${names.slice(0, 20).join(", ")}`);
    return (row) => (read(row) === value) === (operator === "=");
  };
}

function requireOperator(field: string, operator: Operator, operators: readonly Operator[]): void {
  if (!operators.includes(operator))
    throw invalid(`"${field}" does not support the operator ${operator}; use one of ${operators.join(" ")}`);
}

/** Turns filters of lists into conditions of rows. */
import { parseRfc3339 } from "../../src/rfc3339.ts";
import { type Comparison, type Filter, invalid, type Operator, parseFilter } from "./filter-syntax.ts";

/** Tells whether a row is in the list. */
export type Condition<Row> = (row: Row) => boolean;

/** Makes the condition of one comparison with a field. @throws FIELD_INVALID */
export type FilterField<Row> = (comparison: Comparison) => Condition<Row>;

/** The fields of a resource by their names in the proto: "create_time". */
export type FilterFields<Row> = Readonly<Record<string, FilterField<Row>>>;

/**
 * Makes the condition of a filter.
 *
 * @param fields those that the filter may name, there or in camel case; "labels" stands for "labels.<key>".
 * @returns undefined for an empty filter.
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
  throw invalid(`"${field}" is not supported; the fields are ${Object.keys(fields).join(", ")}`);
}

function toSnakeCase(name: string): string {
  return name.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** A text, such as a name. */
export function textField<Row>(read: (row: Row) => string): FilterField<Row> {
  return (comparison) => compareText(comparison, read);
}

/** Labels: "labels.team" is the label "team", and a row without it is different from each value. */
export function labelsField<Row>(read: (row: Row) => Readonly<Record<string, string>>): FilterField<Row> {
  return (comparison) => {
    const label = comparison.field.slice("labels.".length);
    if (label === "") throw invalid('"labels" needs the key of a label, such as labels.team=alpha');
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
  // google.aip.dev/160, "Has operator": an asterisk asks for presence.
  if (value === "*") return (row) => read(row) !== undefined;
  const part = value.toLowerCase();
  return (row) => read(row)?.toLowerCase().includes(part) === true;
}

/** A time; a row without it fits no comparison. */
export function timeField<Row>(read: (row: Row) => Date | undefined): FilterField<Row> {
  return ({ field, operator, value }) => {
    requireOperator(field, operator, ["=", "!=", "<", "<=", ">", ">="]);
    const wanted = parseRfc3339(value)?.getTime();
    if (wanted === undefined)
      throw invalid(`"${value}" is not a time such as "2026-01-31T12:00:00Z", in quotes, for "${field}"`);
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

/** A field with a fixed set of values. @param names all of them, also those that no row here has */
export function choiceField<Row>(read: (row: Row) => string, names: readonly string[]): FilterField<Row> {
  return ({ field, operator, value }) => {
    requireOperator(field, operator, ["=", "!="]);
    if (!names.includes(value))
      throw invalid(`"${value}" is not a value of "${field}"; they are ${names.slice(0, 20).join(", ")}`);
    return (row) => (read(row) === value) === (operator === "=");
  };
}

function requireOperator(field: string, operator: Operator, operators: readonly Operator[]): void {
  if (!operators.includes(operator))
    throw invalid(`"${field}" has the operators ${operators.join(" ")}, not ${operator}`);
}

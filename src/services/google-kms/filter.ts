/** Turns filters of lists into conditions of the database. */
import { type RawBuilder, sql } from "kysely";
import { type Comparison, type Filter, invalid, type Operator, parseFilter } from "./filter-syntax.ts";

type Condition = RawBuilder<boolean>;

/** Makes the condition of one comparison with a field. @throws FIELD_INVALID */
export type FilterField = (comparison: Comparison) => Condition;

/** The fields of a resource by their names in the proto: "create_time". */
export type FilterFields = Readonly<Record<string, FilterField>>;

/**
 * Makes the condition of a filter.
 *
 * @param fields those that the filter may name, there or in camel case; "labels" stands for "labels.<key>".
 * @throws FIELD_INVALID
 */
export function compileFilter(text: string, fields: FilterFields): Condition {
  return compile(parseFilter(text), fields);
}

function compile(filter: Filter, fields: FilterFields): Condition {
  switch (filter.kind) {
    case "and":
    case "or": {
      const conditions = filter.of.map((one) => compile(one, fields));
      return sql<boolean>`(${sql.join(conditions, filter.kind === "and" ? sql` and ` : sql` or `)})`;
    }
    case "not":
      return sql<boolean>`not ${compile(filter.of, fields)}`;
    case "comparison": {
      const name = filter.field.startsWith("labels.") ? "labels" : toSnakeCase(filter.field);
      if (!Object.hasOwn(fields, name))
        throw invalid(`"${filter.field}" is not supported; the fields are ${Object.keys(fields).join(", ")}`);
      const condition = fields[name]?.(filter);
      if (condition === undefined) throw invalid(`"${filter.field}" is not supported`);
      return condition;
    }
  }
}

function toSnakeCase(name: string): string {
  return name.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** A text without uppercase letters of other scripts, such as a name. */
export function textField(expression: RawBuilder<string>): FilterField {
  return (comparison) => {
    const { value, operator } = requireOperator(comparison, ["=", "!=", ":"]);
    if (operator === "=") return sql<boolean>`(${expression} = ${value})`;
    if (operator === "!=") return sql<boolean>`(${expression} <> ${value})`;
    if (value === "") throw invalid(`has no text after "${comparison.field}:"`);
    // Both databases have "replace"; what finds a position has another name in each.
    return sql<boolean>`(replace(lower(${expression}), ${value.toLowerCase()}, '') <> lower(${expression}))`;
  };
}

/** A time in milliseconds since 1970; a row without it fits no comparison. */
export function timeField(column: string): FilterField {
  return (comparison) => {
    const { value, operator } = requireOperator(comparison, ["=", "!=", "<", "<=", ">", ">="]);
    const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(value);
    const ms = Date.parse(value);
    if (!isTime || Number.isNaN(ms))
      throw invalid(
        `"${value}" is not a time such as "2026-01-31T12:00:00Z", in quotes, for "${comparison.field}"`,
      );
    const symbol = operator === "!=" ? sql`<>` : sql.raw(operator);
    return sql<boolean>`(${sql.ref(column)} is not null and ${sql.ref(column)} ${symbol} ${ms})`;
  };
}

/**
 * A field with a fixed set of values.
 *
 * @param conditions by value. A value without a row, such as a state that resources never have here, fits nothing.
 * @param names all values.
 */
export function choiceField(
  conditions: Readonly<Record<string, Condition>>,
  names: readonly string[] = Object.keys(conditions),
): FilterField {
  return (comparison) => {
    const { value, operator } = requireOperator(comparison, ["=", "!="]);
    if (!names.includes(value))
      throw invalid(
        `"${value}" is not a value of "${comparison.field}"; they are ${names.slice(0, 20).join(", ")}`,
      );
    const condition = conditions[value] ?? nothing;
    return operator === "=" ? condition : sql<boolean>`not ${condition}`;
  };
}

/** Fits no row. */
export const nothing = sql<boolean>`(1 = 0)`;
/** Fits each row. */
export const everything = sql<boolean>`(1 = 1)`;

/** Labels, as the JSON object of a column. */
export function labelsField(column: string): FilterField {
  return (comparison) => {
    const { value, operator, field } = requireOperator(comparison, ["=", "!="]);
    const label = field.slice("labels.".length);
    if (label === "") throw invalid('"labels" needs the key of a label, such as labels.team=alpha');
    const member = `${JSON.stringify(label)}:${JSON.stringify(value)}`;
    // A quote in a label is escaped, and labels of Google have none.
    const condition = sql<boolean>`(replace(${sql.ref(column)}, ${member}, '') <> ${sql.ref(column)})`;
    return operator === "=" ? condition : sql<boolean>`not ${condition}`;
  };
}

function requireOperator(comparison: Comparison, operators: readonly Operator[]): Comparison {
  if (operators.includes(comparison.operator)) return comparison;
  throw invalid(`"${comparison.field}" has ${operators.join(" ")}, not ${comparison.operator}`);
}

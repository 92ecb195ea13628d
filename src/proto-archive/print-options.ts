/** Prints the options of descriptors, in the text format of protobuf. */
import {
  type DescExtension,
  type DescField,
  type DescMessage,
  getExtension,
  type Message,
  type Registry,
} from "@bufbuild/protobuf";
import { isReflectMessage, type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";

/** An option as it appears in source: `deprecated`, `(google.api.http)`. */
export interface PrintedOption {
  readonly name: string;
  readonly value: string;
}

/** Lists the options that are set, one entry for each element of a repeated option. */
export function listOptions(
  schema: DescMessage,
  options: Message | undefined,
  registry: Registry,
): PrintedOption[] {
  if (options === undefined) return [];
  return listSet(reflect(schema, options), registry).flatMap(({ field, name, value }) => {
    const printedName = field.kind === "extension" ? `(${name})` : name;
    return printValues(field, value, registry).map((printed) => ({ name: printedName, value: printed }));
  });
}

/** Prints the options after a declaration: ` [deprecated = true]`, or nothing. */
export function inBrackets(options: readonly PrintedOption[]): string {
  return options.length === 0
    ? ""
    : ` [${options.map(({ name, value }) => `${name} = ${value}`).join(", ")}]`;
}

/** Prints a string literal. */
export function quote(text: string): string {
  return quoteBytes(new TextEncoder().encode(text));
}

/** A field or an extension that is set in a message. */
interface SetField {
  readonly field: DescField | DescExtension;
  readonly name: string;
  readonly value: unknown;
}

function listSet(message: ReflectMessage, registry: Registry): SetField[] {
  const fields = message.fields.filter((field) => message.isSet(field));
  const numbers = new Set(message.message.$unknown?.map(({ no }) => no));
  const extensions = [...numbers].flatMap((number) => registry.getExtensionFor(message.desc, number) ?? []);
  return [
    ...fields.map((field) => ({ field, name: field.name, value: message.get(field) })),
    ...extensions.map((field) => ({
      field,
      name: field.typeName,
      value: getExtension(message.message, field),
    })),
  ];
}

/** Prints a value; a repeated field has one for each element, and a map one for each entry. */
function printValues(field: DescField | DescExtension, value: unknown, registry: Registry): string[] {
  switch (field.fieldKind) {
    case "scalar":
      return [printScalar(value)];
    case "enum":
      return [enumName(field, value)];
    case "message":
      return [printMessage(field.message, value, registry)];
    case "map":
      throw new Error(`${field.name}: cannot print a map`);
    default:
      return [...(value as Iterable<unknown>)].map((element) => {
        if (field.listKind === "enum") return enumName(field, element);
        return field.listKind === "message"
          ? printMessage(field.message, element, registry)
          : printScalar(element);
      });
  }
}

function enumName({ enum: declaration, name }: DescField | DescExtension, value: unknown): string {
  const found = declaration?.values.find(({ number }) => number === value);
  if (found === undefined) throw new Error(`${name}: ${value} is not a value of ${declaration?.typeName}`);
  return found.name;
}

/** A message is reflected if it comes from a field, and plain if it comes from an extension. */
function printMessage(schema: DescMessage, value: unknown, registry: Registry): string {
  const message = isReflectMessage(value, schema) ? value : reflect(schema, value as Message);
  const parts = listSet(message, registry).flatMap(({ field, name, value: part }) => {
    const printedName = field.kind === "extension" ? `[${name}]` : name;
    return printValues(field, part, registry).map((printed) => `${printedName}: ${printed}`);
  });
  return parts.length === 0 ? "{}" : `{ ${parts.join(" ")} }`;
}

function printScalar(value: unknown): string {
  if (typeof value === "string") return quote(value);
  if (value instanceof Uint8Array) return quoteBytes(value);
  if (value === Number.POSITIVE_INFINITY) return "inf";
  if (value === Number.NEGATIVE_INFINITY) return "-inf";
  return Number.isNaN(value) ? "nan" : String(value);
}

/** Everything outside of printable ASCII is escaped in octal, which every parser reads. */
function quoteBytes(bytes: Uint8Array): string {
  const characters = Array.from(bytes, (byte) => {
    const character = String.fromCharCode(byte);
    if (character === '"' || character === "\\") return `\\${character}`;
    return byte >= 0x20 && byte < 0x7f ? character : `\\${byte.toString(8).padStart(3, "0")}`;
  });
  return `"${characters.join("")}"`;
}
